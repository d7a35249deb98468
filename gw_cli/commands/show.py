"""`gw show`: show everything about one job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from gw_cli import output, stderr
from gw_cli.arguments import whole_number
from gw_cli.command import Json, command
from gw_cli.commands import history
from gw_cli.connect import open_client
from gw_cli.exit_codes import NothingMatchedError
from gw_cli.output import Column, JsonText, Shape
from gw_cli.records import JOBS, PAYLOAD, job_record
from gw_cli.sanitize import indented, quoted, visible
from gw_cli.settings import Configuration
from gw_cli.sharding import for_one_shard
from gw_core import JobState
from gw_core.errors import InvalidInputError, SchemaMissingError
from gw_core.front_ends import counted

if TYPE_CHECKING:
    from gw_core.front_ends import PlannedAttempt
    from gw_core.operations import EndedAttempt, JobReport, JobStep, RecordedAction, WaitingGroup

T = TypeVar("T")

KEYS: Final = (
    *JOBS.keys,
    "payload",
    "at",
    "failed_at",
    "reasons",
    "upcoming_attempts",
    "groups",
    "waits_for",
    "steps",
    "actions",
)
GROUPS: Final = Shape(
    (
        Column("id"),
        Column("task"),
        Column("job_key"),
        Column("on_failure", find=lambda group: str(group.on_failure)),
        Column("members"),
        Column("open"),
        Column("failed"),
    )
)
STEPS: Final = Shape(
    (
        Column("name"),
        Column("finished"),
        Column("attempt"),
        Column("saved_at"),
        Column("value", find=lambda step: JsonText(step.value_json) if step.value_json else None),
    )
)
ACTIONS: Final = Shape(tuple(Column(each) for each in ("id", "at", "action", "by", "role", "program", "address")))
REASONS: Final = Shape((Column("code", find=lambda reason: str(reason.code)), Column("message"), Column("inferred")))
ATTEMPTS: Final = Shape((Column("number"), Column("at"), Column("inferred")))
LINES: Final = Shape((Column("name"), Column("value")))
INFERRED: Final = " (inferred)"
FIRST_ATTEMPTS: Final = 5
MAX_VALUE: Final = 200
"""Characters of the value of a step that a line shows; JSON has all of it."""


@command("show")
@for_one_shard
def show(
    configuration: Configuration,
    job_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Job id")] = None,
    key: Annotated[
        str | None, typer.Option("--job-key", "--key", "-k", metavar="KEY", help="Job with this key")
    ] = None,
    payload: Annotated[
        bool, typer.Option("--payload/--no-payload", help="Show the payload; off, it is not read")
    ] = True,
    as_json: Json = False,
) -> None:
    """Show everything about one job.

    Prints its payload, why it is not running, and when it will be tried again if it keeps failing. Facts that are
    inferred are marked. For a job that has ended, prints what history keeps.
    """
    number = whole_number("ID", job_id)
    if (number is None) == (key is None):
        raise InvalidInputError("name one job: give its ID, or its key with --job-key")
    with open_client(configuration) as client:
        report = client.jobs.show(number, job_key=key, with_payload=payload)
        ended = () if number is None else _readable(lambda: client.history.attempts(number))
        shown = number if report is None else report.job.id
        groups = _readable(lambda: client.groups.list(shown)) if report is not None else ()
        steps = _readable(lambda: client.jobs.steps(shown, with_value=payload)) if shown is not None else ()
        actions = _readable(lambda: client.history.actions(shown)) if shown is not None else ()
    if report is None and ended:
        _write_ended(ended, steps, actions, with_payload=payload, as_json=as_json)
        if not ended[-1].final:
            stderr.note(
                f"Job {number} has left the queue since this attempt: SQL or another program completed or deleted it."
            )
        return
    if report is None:
        missing = f"there is no job {number}" if key is None else f"no job has the key {quoted(key)}"
        for line in history.action_lines(actions):
            stderr.note(f"Job {number}: {visible(line)}")
        raise NothingMatchedError(f"{missing}; a job that was completed is gone, unless history keeps it")
    _write(report, groups, steps, actions, as_json=as_json)
    if any(not each.final for each in ended):
        stderr.note(f"History has {counted(len(ended), 'ended attempt')} of this job: gw history {number}")
    if report.state is JobState.FAILED:
        stderr.note(f"Once the cause is fixed, retry it with: gw retry {report.job.id}")


def _readable(read: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Return what is read; nothing where the schema lacks it, as an older one does."""
    try:
        return read()
    except SchemaMissingError:
        return ()


def _write_ended(
    attempts: Sequence[EndedAttempt],
    steps: Sequence[JobStep],
    actions: Sequence[RecordedAction],
    *,
    with_payload: bool,
    as_json: bool,
) -> None:
    """Write what history knows of a job that is gone: its last attempt, and those before it."""
    last = history.ATTEMPTS.record(attempts[-1])
    if not with_payload:
        last["payload"] = None
    if as_json:
        more = {
            "ended_attempts": history.ATTEMPTS.records(attempts),
            "steps": STEPS.records(steps),
            "actions": ACTIONS.records(actions),
        }
        output.line(output.to_json({**last, **more}))
        return
    if output.is_terminal(sys.stdout):
        for name, value in last.items():
            if name not in ("error", *history.ON_REQUEST) and (text := output.cell(value)):
                output.line(f"{name:<14}{visible(text)}")
        ended = attempts[-1]
        texts = {"error": ended.error, "result": ended.result_json, "payload": ended.payload_json}
        for name, content in texts.items():
            if content and (with_payload or name != "payload"):
                output.line(f"{name:<14}{indented(content)}")
        _write_titled("ended", history.attempt_lines(attempts))
        _write_titled("steps", _step_lines(steps))
        _write_titled("actions", history.action_lines(actions))
        return
    ended_lines = (("ended", line) for line in history.attempt_lines(attempts))
    _write_fields((*last.items(), *ended_lines, *_more_fields(steps, actions)))


def _write_titled(title: str, lines: Iterable[str]) -> None:
    """Write lines for a terminal, the title before the first."""
    for number, line in enumerate(lines):
        output.line(f"{'' if number else title:<14}{visible(line)}")


def _write_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Write names and values for a pipe."""
    output.records([{"name": name, "value": value} for name, value in fields], LINES, as_json=False)


def record_of(
    report: JobReport,
    groups: Sequence[WaitingGroup] = (),
    steps: Sequence[JobStep] = (),
    actions: Sequence[RecordedAction] = (),
) -> dict[str, object]:
    """Return a report under the keys we promise; a payload that was not fetched is None."""
    return {
        **job_record(report.job, report.state),
        "payload": PAYLOAD.value(report.job) if report.job.payload_json else None,
        "at": report.at,
        "failed_at": report.failed_at,
        "reasons": REASONS.records(report.reasons),
        "upcoming_attempts": ATTEMPTS.records(report.attempts),
        "groups": GROUPS.records(each for each in groups if each.id != report.job.id),
        "waits_for": [job for each in groups if each.id == report.job.id for job in each.waits_for],
        "steps": STEPS.records(steps),
        "actions": ACTIONS.records(actions),
    }


def _write(
    report: JobReport,
    groups: Sequence[WaitingGroup],
    steps: Sequence[JobStep],
    actions: Sequence[RecordedAction],
    *,
    as_json: bool,
) -> None:
    record = record_of(report, groups, steps, actions)
    others = [each.sentence for each in groups if each.id != report.job.id]
    if as_json:
        output.line(output.to_json(record))
    elif output.is_terminal(sys.stdout):
        for name, value in _lines(report, record):
            output.line(f"{name:<14}{value}".rstrip())
        _write_titled("why", (_marked(each.message, inferred=each.inferred) for each in report.reasons))
        _write_titled("to be tried", _schedule(report))
        _write_titled("waited for", others)
        _write_titled("steps", _step_lines(steps))
        _write_titled("actions", history.action_lines(actions))
    else:
        groups_fields = (("group", each) for each in others)
        _write_fields((*_fields(report, record), *groups_fields, *_more_fields(steps, actions)))


def _more_fields(steps: Sequence[JobStep], actions: Sequence[RecordedAction]) -> Iterator[tuple[str, str]]:
    """Yield what the task has finished, how far it came, and what operators did to the job."""
    yield from (("step", line) for line in _step_lines(steps))
    yield from (("action", line) for line in history.action_lines(actions))


def _fields(report: JobReport, record: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield names and values for a pipe, one line for each reason and attempt."""
    for key in KEYS:
        if key not in ("reasons", "upcoming_attempts", "groups", "waits_for", "steps", "actions"):
            yield key, record[key]
    for reason in report.reasons:
        yield "reason", _marked(f"{reason.code}: {reason.message}", inferred=reason.inferred)
    for attempt in report.attempts:
        yield "attempt", _attempt(attempt)


def _lines(report: JobReport, record: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield titles and texts that are fit for a terminal."""
    for key in JOBS.keys:
        text = output.cell(record[key])
        if text and key != "last_error":
            yield key, visible(text)
    if report.job.last_error:
        yield "last_error", indented(report.job.last_error)
    if report.job.payload_json:
        yield "payload", indented(report.job.payload_json)


def _step_lines(steps: Sequence[JobStep]) -> Iterator[str]:
    for each in steps:
        what = "finished" if each.finished else "cursor"
        value = f": {_shortened(each.value_json)}" if each.value_json else ""
        yield f"{each.name} ({what} by attempt {each.attempt} at {output.cell(each.saved_at)}){value}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]} …"


def _schedule(report: JobReport) -> Iterator[str]:
    """Yield the first attempts to come, and the last."""
    for attempt in report.attempts[:FIRST_ATTEMPTS]:
        yield f"attempt {_attempt(attempt)}"
    rest = report.attempts[FIRST_ATTEMPTS:]
    if len(rest) > 1:
        yield f"… {len(rest) - 1} more …"
    if rest:
        yield f"attempt {_attempt(rest[-1])}"


def _attempt(attempt: PlannedAttempt) -> str:
    return _marked(f"{attempt.number} at {output.cell(attempt.at)}", inferred=attempt.inferred)


def _marked(text: str, *, inferred: bool) -> str:
    return f"{text}{INFERRED}" if inferred else text
