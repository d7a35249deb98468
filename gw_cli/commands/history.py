"""`gw history`, `gw actions` and `gw record-others`: list what has ended and what operators did; record more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.arguments import duration, positive_number
from gw_cli.command import DEFAULT_LIMIT, MAX_ROWS, After, Limit, Printed, Timeout, command, row_limit
from gw_cli.connect import open_client, open_to_change
from gw_cli.output import Column, JsonText, Shape
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core.errors import InvalidInputError
from gw_core.front_ends import format_duration, parse_duration

if TYPE_CHECKING:
    from gw_core import Client
    from gw_core.operations import EndedAttempt, RecordedAction

TIMEOUT: Final = "5s"
MAX_ID: Final = 2**63 - 1
ATTEMPTS: Final = Shape(
    (
        Column("id", "ID", "job_id", right=True),
        Column("state", "STATE", lambda attempt: str(attempt.state)),
        Column("task", "TASK", shrinks=True),
        Column("queue_name", "QUEUE", shrinks=True, rank=3),
        Column("attempts", find="attempt"),
        Column("max_attempts"),
        Column("tries", "TRIES", lambda each: f"{each.attempt}/{each.max_attempts}", right=True, rank=5, shown=True),
        Column("job_key", "KEY", shrinks=True, rank=1),
        Column("final"),
        Column("error", "ERROR", shrinks=True, rank=8),
        Column("worker", "WORKER", "worker_id", shrinks=True, rank=2),
        Column("created_at"),
        Column("started_at"),
        Column("finished_at", "FINISHED AT", rank=7),
        Column("expires_at"),
        Column("took", "TOOK", lambda attempt: _took(attempt), right=True, rank=6, shown=True),
        Column("result", "RESULT", lambda attempt: _json(attempt.result_json), shrinks=True, rank=4),
        Column("payload", "PAYLOAD", lambda attempt: _json(attempt.payload_json), shrinks=True, rank=4),
    ),
    order="id state task queue_name tries job_key finished_at took worker error result payload",
)
ON_REQUEST: Final = ("result", "payload")
"""The keys that are not always read."""
COUNTS: Final = Shape((Column("state", "STATE"), Column("count", "COUNT", right=True)))


@command("history")
@for_each_shard("after")
def history(
    configuration: Configuration,
    layout: Printed,
    selection: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SELECTION]...", help="Job ids, or conditions such as task:mail state:failed finished_at:-1h..now"
        ),
    ] = None,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
    timeout_text: Timeout = TIMEOUT,
    result: Annotated[bool, typer.Option("--result", help="Show results too")] = False,
    payload: Annotated[bool, typer.Option("--payload", help="Show payloads too, where they are kept")] = False,
    count: Annotated[bool, typer.Option("--count", help="Count by state instead of listing")] = False,
) -> None:
    """List jobs that have ended.

    Each attempt is a row, the latest first: completed, retried (it failed and another attempt followed), failed (no
    attempt was left) or removed. Conditions: state, id, task, job_key, queue, worker, attempts, finished_at,
    started_at, created_at, error, payload and result.
    """
    which = " ".join(selection or ())
    most, timeout = positive_number("--limit", limit, MAX_ROWS), duration("--timeout", timeout_text)
    if count and (after or result or payload):
        raise InvalidInputError("--count lists nothing; give it without --after, --result and --payload")
    with open_client(configuration) as client:
        if count:
            counts = client.history.count(which, timeout=timeout)
            rows = [{"state": str(state), "count": number} for state, number in counts.items()]
            layout.show(rows, COUNTS)
            return
        page = client.history.list(
            which, after=after, limit=most, with_result=result, with_payload=payload, timeout=timeout
        )
        if not page.attempts:
            _note_nothing(client)
    is_read = {"result": result, "payload": payload}
    layout.show(page.attempts, ATTEMPTS, without=[each for each in ON_REQUEST if not is_read[each]])
    if page.after is not None:
        stderr.note(f"There are more; continue with --after {page.after}")


def _took(attempt: EndedAttempt) -> str | None:
    return None if attempt.started_at is None else format_duration(attempt.finished_at - attempt.started_at)


def _json(text: str | None) -> JsonText | None:
    return None if text is None else JsonText(text)


def attempt_lines(attempts: Sequence[EndedAttempt]) -> list[str]:
    """Return one line for each attempt, for `gw show`."""
    return [
        f"attempt {each.attempt} {each.state} at {output.cell(each.finished_at)}"
        + (f" on {each.worker_id}" if each.worker_id else "")
        + (f": {each.error.splitlines()[0]}" if each.error else "")
        for each in attempts
    ]


def _note_nothing(client: Client) -> None:
    if client.history.status().latest_at is None:
        stderr.note('History is empty; set history = "7d" in gw.toml, or declare @task(keep=timedelta(days=7)).')
    else:
        stderr.note("Nothing in history matches.")


# -- what operators did ------------------------------------------------------------------------------------------------


MOST_ACTIONS: Final = 10_000
ACTIONS: Final = Shape(
    (
        Column("id", "ID", right=True),
        Column("at", "AT"),
        Column("action", "ACTION"),
        Column("jobs", "JOBS", lambda each: len(each.job_ids) or None, right=True, rank=2),
        Column("job_ids", find=lambda each: list(each.job_ids)),
        Column("targets", "OF", lambda each: list(each.targets), shrinks=True, rank=3),
        Column("by", "BY", shrinks=True, rank=1),
        Column("role", "ROLE", shrinks=True, rank=5),
        Column("program", "PROGRAM", shrinks=True, rank=6),
        Column("address", "ADDRESS", shrinks=True, rank=7),
        Column("details", "DETAILS", lambda each: dict(each.details), shrinks=True, rank=4),
    )
)


@command("actions")
@for_each_shard("after")
def actions(
    configuration: Configuration,
    layout: Printed,
    job_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Job id; without it, all actions")] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Start after the action with this id")
    ] = None,
    limit: Annotated[str, row_limit(MOST_ACTIONS)] = DEFAULT_LIMIT,
) -> None:
    """List what operators did.

    The latest first, of the last 90 days: who retried, completed, failed, rescheduled, removed, restored or cancelled
    jobs, unlocked or swept workers, paused, resumed or limited something, forgot a cron item, cleaned up or ended a
    session, and from where. A batch of jobs is one action.
    """
    number = None if job_id is None else positive_number("ID", job_id, MAX_ID)
    before = None if after is None else positive_number("--after", after, MAX_ID)
    most = positive_number("--limit", limit, MOST_ACTIONS)
    with open_client(configuration) as client:
        found = client.history.actions(number, after=before, limit=most)
    layout.show(found, ACTIONS)
    if not found:
        stderr.note("No action is recorded.")
    elif len(found) == most:
        stderr.note(f"There may be more; continue with --after {found[-1].id}")


def action_lines(found: Sequence[RecordedAction]) -> list[str]:
    """Return one line for each action, for `gw show`."""
    return [f"{output.cell(each.at)} {each.sentence}" for each in found]


# -- jobs that other programs end --------------------------------------------------------------------------------------


OTHERS: Final = Shape(
    (
        Column("records_others"),
        Column("keep_seconds"),
        Column("records_others_shown", "JOBS ENDED BY OTHERS", shown=True),
    )
)


@command("record-others")
@for_each_shard()
def record_others(
    configuration: Configuration,
    layout: Printed,
    period: Annotated[
        str | None, typer.Argument(metavar="[PERIOD]", help="How long to keep them, such as 7d, or off")
    ] = None,
) -> None:
    """Record jobs that other programs end.

    Adds a trigger to the jobs table, which records each job that Node.js or Rust workers complete and each job that is
    removed; off removes it. Only the owner of the queue may do that. Without PERIOD, shows whether they are recorded.
    """
    with open_to_change(configuration) as client:
        if period is not None:
            client.history.record_others(None if period == "off" else parse_duration(period))
        kept = client.history.status().records_others
    row = {
        "records_others": kept is not None,
        "keep_seconds": None if kept is None else kept.total_seconds(),
        "records_others_shown": "not recorded" if kept is None else f"recorded and kept for {format_duration(kept)}",
    }
    layout.show([row], OTHERS)
