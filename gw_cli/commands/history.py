"""`gw history`: list jobs that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.arguments import duration, positive_number
from gw_cli.command import DEFAULT_LIMIT, MAX_ROWS, After, Limit, Printed, command, search_timeout
from gw_cli.connect import open_client
from gw_cli.output import Column, JsonText
from gw_cli.records import Fields, fields_of
from gw_cli.settings import Configuration
from gw_core.errors import InvalidInputError
from gw_core.operations import format_duration

if TYPE_CHECKING:
    from gw_core.operations import EndedAttempt, History

TIMEOUT: Final = "5s"
FIELDS: Final[Fields] = {
    "id": attrgetter("job_id"),
    "state": lambda attempt: str(attempt.state),
    "task": attrgetter("task"),
    "queue": attrgetter("queue_name"),
    "attempts": attrgetter("attempt"),
    "max_attempts": attrgetter("max_attempts"),
    "key": attrgetter("key"),
    "final": attrgetter("final"),
    "error": attrgetter("error"),
    "worker": attrgetter("worker_id"),
    "created_at": attrgetter("created_at"),
    "started_at": attrgetter("started_at"),
    "finished_at": attrgetter("finished_at"),
    "expires_at": attrgetter("expires_at"),
}
KEPT: Final[Fields] = {
    "result": lambda attempt: None if attempt.result is None else JsonText(attempt.result),
    "payload": lambda attempt: None if attempt.payload is None else JsonText(attempt.payload),
}
KEYS: Final = tuple(FIELDS)
COLUMNS: Final = (
    Column("id", "ID", right=True),
    Column("state", "STATE"),
    Column("task", "TASK", shrinks=True),
    Column("queue", "QUEUE", shrinks=True, rank=3),
    Column("tries", "TRIES", right=True, rank=5),
    Column("key", "KEY", shrinks=True, rank=1),
    Column("finished_at", "FINISHED AT", rank=7),
    Column("took", "TOOK", right=True, rank=6),
    Column("worker", "WORKER", shrinks=True, rank=2),
    Column("error", "ERROR", shrinks=True, rank=8),
    Column("result", "RESULT", shrinks=True, rank=4),
    Column("payload", "PAYLOAD", shrinks=True, rank=4),
)
COUNT_KEYS: Final = ("state", "count")
COUNT_COLUMNS: Final = (Column("state", "STATE"), Column("count", "COUNT", right=True))


@command("history")
def history(
    configuration: Configuration,
    layout: Printed,
    selection: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SELECTION]...",
            help="Job ids, or conditions such as task:mail state:failed finished_at:-1h..now",
            show_default=False,
        ),
    ] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
    timeout_text: Annotated[str, search_timeout(TIMEOUT)] = TIMEOUT,
    result: Annotated[bool, typer.Option("--result", help="Show results too")] = False,
    payload: Annotated[bool, typer.Option("--payload", help="Show payloads too, where they are kept")] = False,
    count: Annotated[bool, typer.Option("--count", help="Count by state instead of listing")] = False,
) -> None:
    """List jobs that have ended.

    Each attempt is a row, the latest first: completed, retried (it failed and another attempt followed), failed (no
    attempt was left) or removed. Conditions: state, id, task, key, queue, worker, attempts, finished_at, started_at,
    created_at, error, payload and result.
    """
    which = " ".join(selection or ())
    most, timeout = positive_number("--limit", limit, MAX_ROWS), duration("--timeout", timeout_text)
    if count and (after or result or payload):
        raise InvalidInputError("--count lists nothing; give it without --after, --result and --payload")
    with open_client(configuration) as client:
        if count:
            counts = client.history.count(which, timeout=timeout)
            rows = [{"state": str(state), "count": number} for state, number in counts.items()]
            layout.print(rows, keys=COUNT_KEYS, columns=COUNT_COLUMNS)
            return
        page = client.history.list(
            which, after=after, limit=most, with_result=result, with_payload=payload, timeout=timeout
        )
        if not page.attempts:
            _note_nothing(client.history)
    keys = (*KEYS, *(["result"] if result else []), *(["payload"] if payload else []))
    layout.print([for_table(record_of(each)) for each in page.attempts], keys=keys, columns=COLUMNS)
    if page.after is not None:
        stderr.note(f"There are more; continue with --after {page.after}")


def record_of(attempt: EndedAttempt) -> dict[str, object]:
    """Return an ended attempt under the keys we promise."""
    return fields_of(attempt, {**FIELDS, **KEPT})


def for_table(record: dict[str, object]) -> dict[str, object]:
    """Return the record with what a table shows in other words."""
    started, finished = record["started_at"], record["finished_at"]
    took = None if started is None else format_duration(finished - started)  # type: ignore[operator] # both are times
    return {**record, "tries": f"{record['attempts']}/{record['max_attempts']}", "took": took}


def attempt_lines(attempts: Sequence[EndedAttempt]) -> list[str]:
    """Return one line for each attempt, for `gw show`."""
    return [
        f"attempt {each.attempt} {each.state} at {output.cell(each.finished_at)}"
        + (f" on {each.worker_id}" if each.worker_id else "")
        + (f": {each.error.splitlines()[0]}" if each.error else "")
        for each in attempts
    ]


def _note_nothing(history: History) -> None:
    if history.status().latest_at is None:
        stderr.note('History is empty; set history = "7d" in gw.toml, or declare @task(keep=timedelta(days=7)).')
    else:
        stderr.note("Nothing in history matches.")
