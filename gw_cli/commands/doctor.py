"""`gw doctor` and `gw health`: diagnose the queue, and check that it responds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.command import Json, command
from gw_cli.connect import open_client
from gw_cli.exit_codes import ExitCode
from gw_cli.output import Column, Shape
from gw_cli.sanitize import visible
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core.front_ends import counted

if TYPE_CHECKING:
    from gw_core.operations import Finding

FINDINGS: Final = Shape(
    (Column("check"), Column("status", find=lambda finding: str(finding.status)), Column("message"), Column("fix"))
)
MARKS: Final = {"ok": "  ok   ", "warning": "warning", "error": " ERROR "}


@command("doctor")
@for_each_shard()
def doctor(
    configuration: Configuration,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="KIND", help="Judge the rights of the role as those of a worker, adder, viewer, …"
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Diagnose the queue and suggest fixes.

    Checks the server, the schema, privileges, indexes, locks, workers, vacuum and ids without changing anything. The
    role needs the rights that gw grant gave it; a role that may only read is judged as a viewer. Exits with 7 if
    something is wrong.
    """
    from gw_core.front_ends import is_healthy

    with open_client(configuration) as client:
        findings = client.doctor.findings(kind)
    if not as_json and output.is_terminal(sys.stdout):
        _show_page(findings)
    else:
        output.records(findings, FINDINGS, as_json=as_json)
    if is_healthy(findings):
        return ExitCode.OK
    errors = sum(each.status == "error" for each in findings)
    stderr.note(f"{counted(errors, 'error')} found.")
    return ExitCode.UNHEALTHY


def _show_page(findings: Sequence[Finding]) -> None:
    output.heading()
    widest = max(len(each.check) for each in findings)
    for each in findings:
        output.line(f"{MARKS[each.status]} {each.check.ljust(widest)}  {visible(each.message)}")
        if each.fix is not None:
            output.line(f"{' ' * (len(MARKS['ok']) + widest + 3)}→ {visible(each.fix)}")


@command("health")
@for_each_shard()
def health(
    configuration: Configuration,
    as_json: Json = False,
) -> None:
    """Check that the queue responds, for probes.

    Exits with 0 if it does, otherwise with the reason: 3 unreachable, 4 access denied, 5 no schema.
    """
    with open_client(configuration) as client:
        took = round(client.doctor.health_check().total_seconds() * 1000, 2)
    record = {"healthy": True, "milliseconds": took}
    output.answer(f"The queue responded in {took} ms", plain=str(took), record=record, as_json=as_json)
