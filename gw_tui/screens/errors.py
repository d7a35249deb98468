"""Errors of jobs that wait for a retry or failed permanently, equal ones in one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

from textual.content import Content

from gw_core import JobState, Selection
from gw_core.front_ends import FoundJob, counted
from gw_core.operations import EndedAttempt, JobPage, JobReport
from gw_tui.actions.actions import Retry
from gw_tui.data.source import DataSource, Query, known
from gw_tui.rules.error_groups import ErrorGroup, error_groups, failed_at
from gw_tui.screens.job_actions import JobActionsMixin
from gw_tui.screens.list_screen import ListScreen
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.redact import masked
from gw_tui.widgets.keyed_table import Cell, TableColumn, TableRow, duration_cell, sign_cell

MAX_JOBS: Final = 1_000
"""Jobs of each state that are read; more are not counted."""
MAX_NAMED: Final = 10
"""Jobs of a group that the pane names, the latest failure first."""
FAILURES: Final = "state:retried,failed"
"""The attempts of history that failed."""
TIMEOUT: Final = timedelta(milliseconds=200)


@dataclass(frozen=True, slots=True)
class ErrorsSample:
    """Jobs with errors, the attempts that failed last, and the job that is retried as a probe."""

    failed: JobPage
    backoff: JobPage
    ended: Sequence[EndedAttempt] = ()
    probe: JobReport | None = None

    @property
    def is_complete(self) -> bool:
        """True if no more jobs have errors."""
        return self.failed.after is None and self.backoff.after is None


@dataclass(frozen=True)
class ErrorsQuery(Query):
    """The jobs with errors, the latest permanent failures first, and a probe."""

    every: ClassVar[timedelta | None] = timedelta(seconds=2)

    probe: int | None = None

    def ask(self, source: DataSource) -> ErrorsSample:
        failed, backoff = (
            source.page(Selection.of(state=state), limit=MAX_JOBS, timeout=TIMEOUT)
            for state in (JobState.FAILED, JobState.BACKOFF)
        )
        probe = None if self.probe is None else source.job(self.probe, with_payload=False)
        history = known(lambda: source.history(FAILURES))
        return ErrorsSample(failed, backoff, () if history is None else history.attempts, probe)


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

    def __init__(self) -> None:
        super().__init__()
        self._groups: Sequence[ErrorGroup] = ()
        self._probe: Probe | None = None

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def current_query(self) -> ErrorsQuery:
        return ErrorsQuery(None if self._probe is None else self._probe.job_id)

    def show_answer(self, query: Query, answer: object) -> None:
        if isinstance(answer, ErrorsSample) and query == self.current_query():
            if self._probe is not None:
                self._probe = self._probe.read(answer.probe)
            self._groups = error_groups((*answer.failed.jobs, *answer.backoff.jobs), answer.ended)
        super().show_answer(query, answer)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def rows(self, known: ErrorsSample) -> Iterator[TableRow]:
        """Return the groups, the largest first."""
        return (self._row(each, self.console.now) for each in self._groups)

    def _row(self, group: ErrorGroup, now: datetime) -> TableRow:
        is_growing = group.is_growing(now)
        return TableRow(
            group.key,
            {
                "jobs": Cell(self._count(group), "", len(group.jobs)),
                "task": group.task,
                "error": Cell(masked(group.fingerprint), "strong" if is_growing else ""),
                "failed": Cell(f"{group.failed:,}" if group.failed else "", "failed"),
                "first": duration_cell(max(timedelta(), now - group.first), "quiet"),
                "last": duration_cell(max(timedelta(), now - group.last)),
                "growing": sign_cell(symbols.WARNING, "growing") if is_growing else "",
            },
            group,
        )

    def _count(self, group: ErrorGroup) -> str:
        """Return how many jobs the group has, marked if there may be more."""
        return f"{len(group.jobs):,}{'' if self.answer is None or self.answer.is_complete else '+'}"

    def status(self, known: ErrorsSample) -> Iterator[str]:
        if self._probe is not None:
            yield f"probe {self._probe.job_id} {self._probe.state}"
        yield counted(len(self._groups), "kind") + " of errors"
        jobs = sum(len(each.jobs) for each in self._groups)
        yield counted(jobs, "job") if known.is_complete else f"only {MAX_JOBS:,} jobs of each state are read"

    def preview(self) -> Content:
        if (group := self.selected) is None:
            return Content("")
        now = self.console.now
        lines = [
            f"{self._count(group)} {'job' if len(group.jobs) == 1 else 'jobs'} of {sanitize.line(group.task, 60)}",
            "",
        ]
        lines += [
            f"{each.job.id}  attempt {each.job.attempts} of {each.job.max_attempts}"
            f"  {formatting.duration(max(timedelta(), now - failed_at(each.job)))} ago"
            for each in group.jobs[:MAX_NAMED]
        ]
        return Content("\n".join([*lines, "", sanitize.block(masked(group.jobs[0].job.last_error or ""))]))

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
