"""What the commands that act on jobs have in common: which jobs are meant, the question, the batches, the answer."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from gw_cli import command, output, stderr
from gw_cli.arguments import one_of
from gw_cli.confirmation import Question, Steps, Verb
from gw_cli.connect import open_to_change
from gw_cli.exit_codes import ExitCode, NothingMatchedError
from gw_cli.sanitize import quoted, visible
from gw_cli.settings import Configuration
from gw_cli.settings.typer_options import OptionGroup
from gw_cli.typos import doubt_about
from gw_core import JobState
from gw_core.errors import DatabaseUnavailableError, InvalidInputError
from gw_core.front_ends import FrontEnd, NameKind, counted, operator_name
from gw_core.selection.values import Text

if TYPE_CHECKING:
    from gw_core import Client, Selection
    from gw_core.front_ends import JobBatches, OnThreads, SkippedJob
    from gw_core.operations import ActionResult, SelectionCount

KEYS: Final = ("id", "task", "result", "reason", "locked_by")
"""The keys of one answer in JSON, and the columns in a pipe."""

MAX_LINES: Final = 20
"""A person sees one line for each of this many jobs; after that, only for those that were skipped."""

MAX_TASKS: Final = 3
"""How many tasks the question before an action names."""

PROGRESS_SECONDS: Final = 2.0

BATCH_SECONDS: Final = 10.0
"""How long a batch may take to end after Ctrl-C."""

Selected = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTION]...", help="Job ids, or conditions such as state:failed attempts:>3 -queue:slow."
    ),
]


def _condition(*flags: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*flags, metavar=metavar, help=help, rich_help_panel=command.CONDITIONS)


_CONDITIONS: Final[Mapping[str, Any]] = {
    "job_key": Annotated[str | None, _condition("--job-key", "-k", metavar="KEY", help="The job with this key")],
    "state": Annotated[str | None, _condition("--state", metavar="STATE", help=f"Jobs that are {', '.join(JobState)}")],
    "task": Annotated[str | None, _condition("--task", metavar="TASK", help="Jobs of this task")],
    "queue": Annotated[str | None, _condition("--queue", "-q", metavar="NAME", help="Jobs of this queue")],
    "worker": Annotated[str | None, _condition("--worker", metavar="ID", help="Jobs that this worker has locked")],
    "flag": Annotated[str | None, _condition("--flag", metavar="FLAG", help="Jobs with this flag")],
    "error": Annotated[
        str | None, _condition("--error", metavar="TEXT", help="Jobs whose last error contains this text")
    ],
    "every": Annotated[bool, _condition("--all", help="Every job of the queue")],
}
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count the jobs that the command would change")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation")]
AllowNone = Annotated[bool, typer.Option("--allow-none", help="Exit with 0 instead of 6 if no job matches")]


def _selection(
    selection: Sequence[str] | None, *, every: bool | None = None, state: str | None = None, **options: str | None
) -> Selection:
    """Return the jobs that the arguments and the options describe together: all conditions must hold.

    Without any, `every` must be true; None means that no condition is needed. Raises `SelectionError`.
    """
    from gw_core.selection import parse

    one_of("--state", state, [*JobState])
    wanted = parse(" ".join(selection or ()))
    for name, value in {"state": state, **options}.items():
        wanted &= _condition_of(name, value)
    if every and not wanted.is_everything:
        raise InvalidInputError("--all means every job; leave it out, or give no other condition")
    if every is False and wanted.is_everything:
        raise InvalidInputError(
            "select jobs by id, by --job-key or by conditions such as state:failed (--all means every job)"
        )
    return wanted


def _condition_of(name: str, value: str | None) -> Selection:
    """Return the condition of an option; an error names the option, and not the term that it stands for."""
    from gw_core import Selection

    term: dict[str, Any] = {name: value}
    try:
        return Selection.of(**term)
    except InvalidInputError as error:
        flag = f"--{name.replace('_', '-')}"
        raise InvalidInputError(f"{flag}: {str(error).removeprefix(f'{name}: ')}") from None


def selected_by(*conditions: str) -> OptionGroup:
    """Return the options by which a command selects jobs: its arguments, and these conditions."""
    return OptionGroup({"selection": Selected, **{each: _CONDITIONS[each] for each in conditions}}, _selection)


AllSelected = Annotated["Selection", selected_by(*(each for each in _CONDITIONS if each != "every"))]
"""The jobs of a command that reads; without conditions, every job."""

Chosen = Annotated["Selection", selected_by(*_CONDITIONS)]
"""The jobs of a command that changes them."""


class Manner(msgspec.Struct, frozen=True):
    """How a command changes jobs."""

    dry_run: bool
    yes: bool
    allow_none: bool
    as_json: bool


InManner = Annotated[
    Manner, OptionGroup({"dry_run": DryRun, "yes": Yes, "allow_none": AllowNone, "as_json": command.Json}, Manner)
]


def operator() -> str:
    """Return who runs this program, for the records of actions."""
    return visible(operator_name())


# -- running the action -------------------------------------------------------------------------------------------


def act(
    configuration: Configuration,
    wanted: Selection,
    verb: Verb,
    manner: Manner,
    do: Callable[[JobBatches[OnThreads], Selection], Iterator[ActionResult]],
    *,
    idle: Callable[[SelectionCount], int] = lambda survey: survey.running,
) -> Steps:
    """Do something to the chosen jobs in batches, and report each job; `idle` counts those to be skipped.

    When no job matches, it raises `NothingMatchedError`, unless `allow_none`: then the answer is empty.
    """
    with open_to_change(configuration) as client:
        wanted = FrontEnd(client).at_server_time(wanted)
        total = len(wanted.ids or ()) or 1
        if manner.dry_run or not wanted.is_by_name:
            survey = client.jobs.count(wanted)
            total = survey.jobs
            if total == 0 and not manner.allow_none:
                raise NothingMatchedError(f"no job matches; nothing was {verb.past.lower()}{doubts(client, wanted)}")
            if manner.dry_run:
                return _preview(survey, verb, idle(survey), as_json=manner.as_json)
            if not manner.yes:
                yield question(client, wanted, total, verb)
        answer = Answer(verb, total, as_json=manner.as_json)
        return _carry_out(do(client.jobs.in_batches(), wanted), answer, wanted, allow_none=manner.allow_none)


def question(client: Client, wanted: Selection, total: int, verb: Verb) -> Question:
    """Return the question before an action: how many jobs of which tasks it means, and where they are."""
    front_end = FrontEnd(client)
    tasks = front_end.tasks_of(wanted, most=MAX_TASKS + 1)
    named = [f"{visible(task)} {count:,}" for task, count in tasks[:MAX_TASKS]] + ["…"] * (len(tasks) > MAX_TASKS)
    kinds = f" ({', '.join(named)})" if named else ""
    return Question(verb=verb, counts={"job": total}, place=visible(front_end.place), kinds=kinds)


def doubts(client: Client, wanted: Selection) -> str:
    """Return what to add to an answer for no job: the names in the selection that are probably misspelled."""
    kinds = {"task": NameKind.TASKS, "queue": NameKind.QUEUES}
    named = [
        (kinds[each.term.name], str(value.text))
        for each in wanted.conditions
        if each.term.name in kinds and not each.is_negated
        for value in each.values
        if isinstance(value, Text)
    ]
    return "".join(f"; {doubt}" for kind, name in named if (doubt := doubt_about(client, kind, name)))


def _preview(survey: SelectionCount, verb: Verb, skipped: int, *, as_json: bool) -> ExitCode:
    record = {"jobs": survey.jobs - skipped, "skipped": skipped, "dry_run": True}
    but = f"; {counted(skipped, 'job')} would be skipped" if skipped else ""
    message = f"Would {verb.infinitive} {counted(survey.jobs - skipped, 'job')}{but}"
    output.answer(message, plain=str(survey.jobs - skipped), record=record, as_json=as_json)
    return ExitCode.OK


def _carry_out(batches: Iterator[ActionResult], answer: Answer, wanted: Selection, *, allow_none: bool) -> ExitCode:
    with interruptions() as interrupted:
        try:
            for batch in batches:
                answer.take(batch)
                if interrupted():
                    raise KeyboardInterrupt
        except BaseException as error:
            answer.break_off(rest_of(error, "jobs of the batch that was under way"))
            raise
    if answer.is_empty and not allow_none:
        raise NothingMatchedError(f"no job matches {quoted(str(wanted))}; nothing was {answer.verb.past.lower()}")
    verdict = answer.end()
    return ExitCode.OK if allow_none and verdict is ExitCode.NOT_FOUND else verdict


def rest_of(error: BaseException, under_way: str) -> str:
    """Return what is known of everything beyond the batches that were done before an error."""
    if isinstance(error, DatabaseUnavailableError):  # the answer to a commit may be what was lost
        return f"the {under_way} may be done too"
    return "the others are as they were"


@contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C wait for the current batch; the second one aborts the batch, which rolls it back.

    A batch that waits for a lock, or for more input, may never end: it is aborted after some seconds.
    """
    seen: list[int] = []
    second = threading.Timer(BATCH_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
    second.daemon = True

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.default_int_handler)
        seen.append(number)
        second.start()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        second.cancel()
        signal.signal(signal.SIGINT, before)


# -- the answer ------------------------------------------------------------------------------------------------------


class Answer:
    """Reports each job as soon as its batch is done, because a selection can be larger than memory."""

    def __init__(self, verb: Verb, total: int, *, as_json: bool) -> None:
        self.verb = verb
        self.done = 0
        self.skipped = 0
        self._not_found = 0
        self._total = total
        self._records = output.RecordStream(KEYS, as_json=as_json)
        self._for_a_person = not as_json and output.is_terminal(sys.stdout)
        self._lines = 0
        self._last_progress = time.monotonic()

    @property
    def is_empty(self) -> bool:
        """True when no job was named so far."""
        return not (self.done or self.skipped)

    def take(self, batch: ActionResult) -> None:
        """Say what a batch did."""
        # Counted before anything is printed: a closed pipe does not roll back the batch.
        self.done += len(batch.changed)
        self.skipped += len(batch.skipped)
        self._not_found += sum(each.reason == "not_found" for each in batch.skipped)
        for job in batch.changed:
            self._say(job.id, job.task, None, None, f"{self.verb.past} job {job.id} ({job.task})")
        for skipped in batch.skipped:
            self._say(skipped.id, skipped.task, str(skipped.reason), skipped.locked_by, _skip_message(skipped))
        self._progress()

    def end(self) -> ExitCode:
        """Say the sum and return the verdict."""
        self._records.end()
        if self.is_empty:
            stderr.note(f"No job matches; nothing was {self.verb.past.lower()}.")
        if self.done + self.skipped > 1 or self.skipped:
            stderr.note(f"{self._sum()}.")
        if not self.skipped:
            return ExitCode.OK
        return ExitCode.NOT_FOUND if self._not_found == self.skipped and not self.done else ExitCode.FAILED

    def break_off(self, rest: str) -> None:
        """Say what was done before it ended early: that stays done."""
        with suppress(output.BrokenOutput):
            self._records.end()
        if self.is_empty:
            return
        stderr.note(f"{self._sum()} of {self._total:,} before this ended; {rest}.")

    def _sum(self) -> str:
        skipped = f", skipped {self.skipped}" if self.skipped else ""
        return f"{self.verb.past} {counted(self.done, 'job')}{skipped}"

    def _say(self, number: int, task: str | None, reason: str | None, locked_by: str | None, sentence: str) -> None:
        if self._for_a_person:
            self._lines += 1
            if reason is not None or self._lines <= MAX_LINES:
                shard = output.current_shard()
                output.line(visible(f"{shard}: {sentence}" if shard else sentence))
            return
        result = self.verb.past.lower() if reason is None else "skipped"
        self._records.write(dict(zip(KEYS, (number, task, result, reason, locked_by), strict=True)))

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._last_progress >= PROGRESS_SECONDS:
            self._last_progress = now
            stderr.note(f"{self._sum()} of {self._total} …")


def _skip_message(skipped: SkippedJob) -> str:
    match str(skipped.reason):
        case "not_found":
            return f"Skipped job {skipped.id}: there is no such job"
        case "locked":
            return f"Skipped job {skipped.id} ({skipped.task}): worker {skipped.locked_by} runs it"
        case _:
            hint = f"to run it now: gw reschedule {skipped.id} --run-at now"
            return f"Skipped job {skipped.id} ({skipped.task}): it has not failed; {hint}"
