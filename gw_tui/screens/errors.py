"""Errors of jobs that wait for a retry or failed permanently, equal ones in one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar, Final

from textual.content import Content

from gw_core import JobState, Selection
from gw_core.front_ends import Count, FoundJob, Quality, counted
from gw_core.operations import EndedAttempt, JobPage, JobReport
from gw_tui.actions import Retry
from gw_tui.data.source import DataSource, Query, known
from gw_tui.rules.error_groups import ErrorGroup, error_groups, failed_at
from gw_tui.screens.job_actions import JobActionsMixin
from gw_tui.screens.list_screen import UNKNOWN, ListScreen
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.redact import masked
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, age_cell, sign_cell

MAX_JOBS: Final = 1_000
"""Jobs of each state that are read: the latest failed ones, and the first in backoff by id."""
MAX_NAMED: Final = 10
"""Jobs of a group that the pane names, the latest failure first."""
FAILURES: Final = "state:retried,failed"
"""The attempts of history that failed."""
TIMEOUT: Final = timedelta(milliseconds=200)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The job that is retried as a probe, as it is now; None if it is gone."""

    report: JobReport | None


@dataclass(frozen=True, slots=True)
class ErrorsSample:
    """Jobs with errors, the attempts that failed last, and the job that is retried as a probe; None is unknown."""

    failed: JobPage | None
    backoff: JobPage | None
    ended: Sequence[EndedAttempt] | None = None
    probe: ProbeReport | None = None
    all_backoff: Count | None = None
    """How many jobs wait for a retry, if not all of them were read."""

    @property
    def is_complete(self) -> bool:
        """True if no more jobs have errors."""
        return self.has_all_failed and self.backoff is not None and self.backoff.after is None

    @property
    def has_all_failed(self) -> bool:
        """True if no more jobs have failed permanently."""
        return self.failed is not None and self.failed.after is None

    @property
    def jobs(self) -> Sequence[FoundJob]:
        """The jobs that were read."""
        return [job for page in (self.failed, self.backoff) if page is not None for job in page.jobs]


@dataclass(frozen=True)
class ErrorsQuery(Query):
    """The jobs with errors, and a probe."""

    every: ClassVar[timedelta | None] = timedelta(seconds=2)

    probe: int | None = None

    def ask(self, source: DataSource) -> ErrorsSample:
        failed, backoff = (
            known(partial(source.page, Selection.of(state=state), limit=MAX_JOBS, timeout=TIMEOUT))
            for state in (JobState.FAILED, JobState.BACKOFF)
        )
        history = known(lambda: source.history(FAILURES))
        counts = known(source.statistics) if backoff is not None and backoff.after is not None else None
        return ErrorsSample(
            failed=failed,
            backoff=backoff,
            ended=None if history is None else history.attempts,
            probe=None if self.probe is None else known(partial(self._probed, source, self.probe)),
            all_backoff=None if counts is None else counts.states.get(JobState.BACKOFF),
        )

    @staticmethod
    def _probed(source: DataSource, job_id: int) -> ProbeReport:
        return ProbeReport(source.job(job_id, with_payload=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One job that is retried before the rest of its group."""

    job_id: int
    updated_at: datetime
    """When the job last changed before it was retried."""
    rest: int
    state: str = "waiting"

    def read(self, report: JobReport | None) -> Probe:
        """Return the probe as its job is now."""
        return replace(self, state=self._state(report))

    def _state(self, report: JobReport | None) -> str:
        if report is None:
            return f"completed: R retries the other {self.rest:,}"
        if report.state in (JobState.FAILED, JobState.BACKOFF):
            return "waiting" if report.job.updated_at == self.updated_at else "failed again"
        return str(report.state)


class ErrorsScreen(JobActionsMixin, ListScreen[ErrorsSample, ErrorGroup]):
    """Groups of equal errors; `enter` lists the jobs, `r` retries one as a probe, `R` the whole group."""

    SCREEN_ID = "errors"
    TABLE = "errors"
    COLUMNS = (
        TableColumn("jobs", "jobs", 7, right=True, rank=9),
        TableColumn("task", "task", 22, rank=8),
        TableColumn("error", "error", least=20, share=3, rank=9),
        TableColumn("failed", "failed", 7, right=True, rank=4),
        TableColumn("first", "first", 7, right=True, rank=3),
        TableColumn("last", "last", 7, right=True, rank=6),
        TableColumn("growing", "", 9, rank=7),
    )
    EMPTY = "No errors"
    PREVIEW = "beside"

    CSS = """
    ErrorsScreen #beside { display: block; height: 40%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._groups: Sequence[ErrorGroup] = ()
        self._probe: Probe | None = None

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def current_query(self) -> ErrorsQuery:
        return ErrorsQuery(None if self._probe is None else self._probe.job_id)

    def show_answer(self, query: Query, answer: object) -> None:
        if isinstance(answer, ErrorsSample) and query == self.current_query():
            if self._probe is not None and answer.probe is not None:
                self._probe = self._probe.read(answer.probe.report)
            self._groups = error_groups(answer.jobs, answer.ended or ())
        super().show_answer(query, answer)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def rows(self, known: ErrorsSample) -> Iterator[TableRow]:
        """Return the groups, the largest first."""
        return (self._row(each, self.state.now) for each in self._groups)

    def emptiness(self, known: ErrorsSample) -> str:
        if known.failed is None or known.backoff is None:
            return UNKNOWN
        return self.EMPTY if self._knows_all else "No errors in the jobs that were read"

    @property
    def _knows_all(self) -> bool:
        """True if all jobs with errors were read, and the role may see all rows."""
        snapshot = self.state.snapshot
        return self._is_complete and snapshot is not None and not snapshot.schema.rows_hidden

    @property
    def _is_complete(self) -> bool:
        return self.answer is not None and self.answer.is_complete

    def _row(self, group: ErrorGroup, now: datetime) -> TableRow:
        is_growing, knows_times = group.is_growing(now), self._is_complete
        has_all_failed = self.answer is not None and self.answer.has_all_failed
        return TableRow(
            group.key,
            {
                "jobs": Cell(self._count(group), "", len(group.jobs)),
                "task": group.task,
                "error": Cell(masked(group.fingerprint), "strong" if is_growing else ""),
                "failed": Cell(_counted(group.failed, is_all=has_all_failed) if group.failed else "", "failed"),
                "first": age_cell(now - group.first, "quiet", "" if knows_times else ">"),
                "last": age_cell(now - group.last, "", "" if knows_times else "<"),
                "growing": sign_cell(symbols.WARNING, "growing") if is_growing else "",
            },
            group,
        )

    def _count(self, group: ErrorGroup) -> str:
        """Return how many jobs the group has, marked if there may be more."""
        return _counted(len(group.jobs), is_all=self._is_complete)

    def status(self, known: ErrorsSample) -> Iterator[str]:
        if self._probe is not None:
            yield f"probe {self._probe.job_id} {self._probe.state}"
        if known.ended is None:
            yield "history unknown"
        kinds = counted(len(self._groups), "kind")
        if known.is_complete:
            yield f"{kinds} of errors"
            yield counted(sum(len(each.jobs) for each in self._groups), "job")
            return
        if self._groups:
            yield f"at least {kinds}"
        snapshot = self.state.snapshot
        if known.failed is None:
            yield "failed jobs unknown"
        elif known.failed.after is not None:
            yield f"latest {_part(known.failed, None if snapshot is None else snapshot.failed)} failed"
        if known.backoff is None:
            yield "jobs in backoff unknown"
        elif known.backoff.after is not None:
            yield f"{_part(known.backoff, known.all_backoff)} in backoff"

    def preview(self) -> Content:
        if (group := self.selected) is None:
            return Content("")
        now = self.state.now
        jobs = "job" if len(group.jobs) == 1 else "jobs"
        lines = [
            f"{self._count(group)} {jobs} of {sanitize.line(group.task, 60)}",
            "",
            sanitize.block(masked(group.jobs[0].job.last_error or "")),
            "",
        ]
        lines += [
            f"{each.job.id}  attempt {each.job.attempts} of {each.job.max_attempts}{_ago(now - failed_at(each))}"
            for each in group.jobs[:MAX_NAMED]
        ]
        return Content("\n".join(lines))

    # -- commands --------------------------------------------------------------------------------------------------

    def targets(self) -> tuple[FoundJob, ...]:
        return () if (group := self.selected) is None else group.jobs

    def action_open(self) -> None:
        if (group := self.selected) is not None:
            self.console.visit("jobs", group.selection)

    def action_probe(self) -> None:
        """Retry the job of the group that failed last, to see whether the others can be retried."""
        if (group := self.selected) is None:
            return
        job = group.jobs[0].job
        self._probe = Probe(job_id=job.id, updated_at=job.updated_at, rest=len(group.jobs) - 1)
        self.action_runner.begin(Retry(jobs=[job]))
        self.ask()
        self.draw()

    def action_retry_group(self) -> None:
        self.action_retry()

    def action_copy(self) -> None:
        if (group := self.selected) is not None:
            self.console.copy(group.selection)


def _counted(number: int, *, is_all: bool) -> str:
    return str(Count(number, Quality.EXACT if is_all else Quality.AT_LEAST))


def _part(page: JobPage, total: Count | None) -> str:
    """Return how many jobs of how many were read; a total is never below what was read."""
    number = len(page.jobs)
    if total is None or total.value <= number:
        total = Count(number, Quality.AT_LEAST)
    return f"{number:,} of {formatting.count(total)}"


def _ago(age: timedelta) -> str:
    return "" if age < timedelta() else f"  {formatting.duration(age)} ago"
