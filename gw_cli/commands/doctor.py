"""`gw doctor`: say what is wrong with the queue, and what mends it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gw_cli import output, stderr
from gw_cli.command import Json, command, new_app
from gw_cli.connect import open_client
from gw_cli.exit_codes import ExitCode
from gw_cli.sanitize import visible
from gw_cli.settings import Configuration
from gw_cli.settings.options import with_settings

if TYPE_CHECKING:
    from gw_core.operations import Finding

KEYS: Final = ("check", "verdict", "finding", "remedy")
MARKS: Final = {"ok": "  ok  ", "note": " note ", "wrong": "WRONG "}

app = new_app()


@command(app, "doctor")
@with_settings("doctor")
def doctor(
    configuration: Configuration,
    as_json: Json = False,
) -> int:
    """Diagnose the queue and suggest fixes.

    Looks at the server, the schema, rights, indexes, locks, workers, vacuum and ids, and changes nothing. Exits with 7
    when something is wrong.
    """
    from gw_core.operations import is_healthy

    with open_client(configuration) as client:
        findings = client.doctor.findings()
    if not as_json and output.is_terminal(sys.stdout):
        _show_page(findings)
    else:
        output.records([_record(each) for each in findings], keys=KEYS, columns=(), as_json=as_json)
    if is_healthy(findings):
        return ExitCode.OK
    wrong = sum(each.verdict == "wrong" for each in findings)
    stderr.note(f"{wrong} {'thing needs' if wrong == 1 else 'things need'} your hand.")
    return ExitCode.UNHEALTHY


def _record(each: Finding) -> dict[str, object]:
    return {"check": each.check, "verdict": str(each.verdict), "finding": each.words, "remedy": each.remedy}


def _show_page(findings: Sequence[Finding]) -> None:
    widest = max(len(each.check) for each in findings)
    for each in findings:
        output.line(f"{MARKS[each.verdict]} {each.check.ljust(widest)}  {visible(each.words)}")
        if each.remedy is not None:
            output.line(f"{' ' * (len(MARKS['ok']) + widest + 3)}→ {visible(each.remedy)}")
