"""`gw unlock`: take the locks from workers that are dead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import bulk_command, output, stderr
from gw_cli.command import Json, command
from gw_cli.connect import open_to_change
from gw_cli.exit_codes import ExitCode, NothingMatchedError
from gw_cli.records import counted
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration
from gw_core.errors import InvalidInputError

if TYPE_CHECKING:
    from gw_core.operations import WorkerInfo

ALIVE_SECONDS: Final = 300.0
"""A worker whose last heartbeat is more recent than this may still be alive."""

KEYS: Final = ("worker", "result", "jobs", "queues", "heartbeat_age_seconds")
COLUMNS: Final = (
    output.Column("worker", "WORKER", shrinks=True),
    output.Column("result", "RESULT"),
    output.Column("jobs", "JOBS", right=True),
    output.Column("queues", "QUEUES", right=True),
)


@command("unlock")
def unlock(
    configuration: Configuration,
    workers: Annotated[list[str], typer.Argument(metavar="WORKER...", help="Workers, as 'gw list' shows them")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be unlocked")] = False,
    yes: bulk_command.Yes = False,
    as_json: Json = False,
) -> int:
    """Release all locks of dead workers.

    If the worker is alive, its jobs run twice. So the command asks for confirmation, and warns if the last heartbeat is
    recent.
    """
    names = sorted(set(workers))
    if any(not name or "\x00" in name for name in names):
        raise InvalidInputError("a worker's id is empty or holds a NUL; give it as 'gw list' shows it")
    with open_to_change(configuration) as client:
        held = client.workers.locks(names)
        jobs, queues = sum(each.jobs for each in held), sum(each.queues for each in held)
        if not jobs + queues:
            raise NothingMatchedError(
                f"{', '.join(map(quoted, names))} holds no job and no queue; nothing was unlocked"
            )
        _warn(held)
        what = f"{counted(jobs)} and {counted(queues, 'queue')}"
        if not (dry_run or yes):
            bulk_command.confirm(f"Unlock {what}?", f"{what} would be unlocked")
        freed = held if dry_run else client.workers.unlock(names)
    rows = [_record(each, dry_run=dry_run) for each in freed]
    output.records(rows, keys=KEYS, columns=COLUMNS, as_json=as_json)
    return ExitCode.OK if all(each.jobs + each.queues for each in freed) else ExitCode.FAILED


def _warn(held: Sequence[WorkerInfo]) -> None:
    for each in held:
        if each.heartbeat_age is not None and each.heartbeat_age.total_seconds() < ALIVE_SECONDS:
            age = f"its last heartbeat was {each.heartbeat_age.total_seconds():.0f} s ago"
            stderr.note(f"warning: {quoted(each.id)} may be alive: {age}; if it is, its current jobs run a second time")


def _record(each: WorkerInfo, *, dry_run: bool) -> dict[str, object]:
    result = "no_locks" if not each.jobs + each.queues else "would_unlock" if dry_run else "unlocked"
    age = None if each.heartbeat_age is None else round(each.heartbeat_age.total_seconds(), 1)
    return {
        "worker": each.id,
        "result": result,
        "jobs": each.jobs,
        "queues": each.queues,
        "heartbeat_age_seconds": age,
    }
