"""Everything about one job: why it is where it is, its payload, its error, and its attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from gw_core import JobState
from gw_core.front_ends import FoundJob, QueueSnapshot, counted
from gw_core.operations import EndedAttempt, JobReport
from gw_tui.clipboard import is_too_long
from gw_tui.data.source import DataSource, JobRelations, Query, in_time, known
from gw_tui.rules.attempts import AttemptRow, Certainty, attempt_rows, recorded_rows
from gw_tui.rules.commands import JOB
from gw_tui.rules.connection_state import FailureKind
from gw_tui.screens.job_actions import JobActionsMixin
from gw_tui.screens.pause_actions import PauseMixin
from gw_tui.screens.worker_actions import WorkerActionsMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.json_view import JsonView, Role, json_view
from gw_tui.text.redact import masked
from gw_tui.widgets.job_rows import RowContext, state_cell
from gw_tui.widgets.text_panel import ScrollPanel, TextPanel

NO_RELATIONS: Final = JobRelations()
UNKNOWN_RELATIONS: Final = JobRelations(steps=None, groups=None, actions=None)
NOT_READ: Final = "unknown now: the job was not read in time"
WIDE: Final = 110
"""The width from which on the attempts stand beside the payload."""

Neighbour = Callable[[int, int], int | None]

STYLES: Final = {
    Role.PUNCTUATION: "$quiet",
    Role.KEY: "bold",
    Role.STRING: "",
    Role.NUMBER: "",
    Role.LITERAL: "",
    Role.MASKED: "$quiet",
    Role.NOTE: "$quiet italic",
}


@dataclass(frozen=True)
class JobAnswer:
    """A job as it is now, its recorded attempts, its steps, and the jobs that wait for it; None is unknown."""

    report: JobReport | None
    """None if the job is gone, and if it was not read."""
    ended: Sequence[EndedAttempt] | None
    relations: JobRelations
    was_read: bool


@dataclass(frozen=True)
class JobQuery(Query):
    """One job, at each tick."""

    job_id: int
    with_payload: bool = True

    def ask(self, source: DataSource) -> JobAnswer:
        ended = known(lambda: source.attempts(self.job_id))
        relations = known(lambda: source.relations(self.job_id)) or UNKNOWN_RELATIONS
        found = in_time(lambda: (source.job(self.job_id, with_payload=self.with_payload),))
        return JobAnswer(None if found is None else found[0], ended, relations, was_read=found is not None)


class JobScreen(JobActionsMixin, WorkerActionsMixin, PauseMixin):
    """One job, pushed over a list; `neighbour` finds the one this many rows further in it."""

    SCREEN_ID = JOB
    TAB = "jobs"
    AUTO_FOCUS = "#panels, #payload"
    HORIZONTAL_BREAKPOINTS = [(0, "-is-narrow"), (WIDE, "-is-wide")]  # noqa: RUF012 - as the base class has it

    CSS = """
    JobScreen #which, JobScreen #why, JobScreen #timeline {
        height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    JobScreen #which { max-height: 2; text-wrap: wrap; }
    JobScreen #why { max-height: 3; text-wrap: wrap; }
    JobScreen #panels { layout: horizontal; height: 1fr; }
    JobScreen #data { width: 1fr; height: 1fr; }
    JobScreen #payload { height: 3fr; }
    JobScreen #error { height: 2fr; }
    JobScreen #side { width: 50; height: 1fr; }
    JobScreen #attempts { height: 1fr; }
    JobScreen #related { height: auto; max-height: 50%; }
    JobScreen.-is-narrow #panels { layout: vertical; }
    JobScreen.-is-narrow #data, JobScreen.-is-narrow #side { width: 1fr; height: auto; }
    JobScreen.-is-narrow #payload { height: auto; max-height: 22vh; }
    JobScreen.-is-narrow #error { height: auto; max-height: 28vh; }
    JobScreen.-is-narrow #attempts, JobScreen.-is-narrow #related { height: auto; max-height: 1000; }
    JobScreen .-maximized { height: 1fr !important; max-height: 1000 !important; }
    """

    def __init__(self, job_id: int, neighbour: Neighbour | None = None) -> None:
        super().__init__()
        self._job_id = job_id
        self._neighbour = neighbour
        self.report: JobReport | None = None
        self._gone_at: datetime | None = None
        self._ended: Sequence[EndedAttempt] | None = ()
        self._relations = NO_RELATIONS
        self._failure = ""
        self._is_unmasked = False
        self._payload: tuple[tuple[object, ...], JsonView] | None = None

    def body(self) -> ComposeResult:
        yield Static("", id="which", markup=False)
        yield Static("", id="why", markup=False)
        yield Static("", id="timeline", markup=False)
        with ScrollPanel(id="panels") as panels:
            panels.can_focus = self.app.size.width < WIDE
            with Vertical(id="data"):
                yield TextPanel("Payload", id="payload", copies=False)
                yield TextPanel("Last error", id="error")
            with Vertical(id="side"):
                yield TextPanel("Attempts", id="attempts", wraps=False)
                yield TextPanel("Related", id="related", wraps=False)

    def on_resize(self, event: events.Resize) -> None:
        """Scroll the panels together where they stand below each other."""
        super().on_resize(event)
        panels = self.query_one("#panels")
        was_narrow, panels.can_focus = panels.can_focus, event.size.width < WIDE
        first = {False: self.query_one("#payload"), True: panels}
        if self.focused is first[was_narrow]:
            first[panels.can_focus].focus()

    def on_mount(self) -> None:
        self.query_one("#which", Static).update(Content.assemble((f"job {self._job_id}", "bold"), " · loading…"))

    def describe(self) -> tuple[str, str]:
        return "Job", "One job: reasons for its state, payload, error and attempts."

    # -- for others ------------------------------------------------------------------------------------------------

    @property
    def has_row(self) -> bool:
        return self.report is not None and self._gone_at is None

    def targets(self) -> tuple[FoundJob, ...]:
        report = self.report
        return () if report is None or self._gone_at is not None else (FoundJob(report.job, report.state),)

    def pause_target(self) -> str | None:
        return None if self.report is None else f"task:{self.report.job.task}"

    def holder(self) -> str | None:
        return None if self.report is None else self.report.job.locked_by

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def current_query(self) -> Query | None:
        return JobQuery(self._job_id, self.state.options.show_payload)

    def show_answer(self, query: Query, answer: object) -> None:
        """Show the job as it is now, or as it was last when it is gone."""
        if query != self.current_query():
            return
        had_row = self.has_row
        assert isinstance(answer, JobAnswer)  # noqa: S101 - each query has its kind of answer
        self._failure = "" if answer.was_read else NOT_READ
        self._ended, self._relations = answer.ended, answer.relations
        if answer.report is not None:
            self.report, self._gone_at = answer.report, None
        elif answer.was_read and self._gone_at is None:
            self._gone_at = self.state.now
        self._draw()
        if had_row != self.has_row:
            self.refresh_bindings()

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        self._draw_lines()

    def show_time(self) -> None:
        self._draw_lines()

    def show_failure(self, failure: FailureKind, reason: str) -> None:
        self._failure = sanitize.line(f"{failure}: {reason}", 300)
        self._draw_lines()

    # -- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        self._draw_lines()
        if not self.stands:
            return
        attempts, related = self.query_one("#attempts", TextPanel), self.query_one("#related", TextPanel)
        now = self.state.now if self.report is None else self.report.at
        blocks = list(_related(self._relations, now))
        related.display = bool(blocks)
        related.show(Content("\n\n").join(blocks))
        report = self.report
        self.query_one("#payload").display = self.query_one("#error").display = report is not None
        attempts.display = report is not None or bool(self._ended)
        attempts.border_subtitle = Content("" if self._ended is not None else "history unknown")
        if report is None:
            attempts.show(_attempts(recorded_rows(self._ended or ()), now))
            return
        self._draw_payload(report)
        self._draw_error(report)
        rows = attempt_rows(report, self._ended or ())
        is_inferred = any(each.certainty is Certainty.INFERRED for each in rows)
        if is_inferred and self._ended is not None:
            attempts.border_subtitle = Content("≈ inferred · wait e^min(n,10) s")
        attempts.show(_attempts(rows, now, empty="No attempts" if self._ended is not None else "unknown"))

    def _draw_lines(self) -> None:
        if not self.stands:
            return
        which, why, timeline = (self.query_one(f"#{name}", Static) for name in ("which", "why", "timeline"))
        if (report := self.report) is None:
            missing = _gone(self._ended, self.state.now) if self._gone_at else "loading…"
            which.update(Content.assemble((f"job {self._job_id}", "bold"), f" · {self._failure or missing}"))
            return
        now = self.state.now
        which.update(self._which(report, now))
        why.update(self._why(report))
        timeline.update(_timeline(report))

    def _which(self, report: JobReport, now: datetime) -> Content:
        job = report.job
        cell = state_cell(FoundJob(job, report.state), now, RowContext.from_snapshot(self.state.snapshot))
        parts = [
            Content.styled(f"job {job.id}", "bold"),
            Content.styled(sanitize.line(job.task, 128), "bold"),
            Content.styled(cell.text, "$error" if cell.role == "error" else f"$state-{report.state}"),
            Content(f"attempt {job.attempts} of {job.max_attempts}"),
        ]
        named = (("queue", job.queue_name), ("prio", job.priority or None), ("key", job.job_key), ("rev", job.revision))
        parts += [
            Content.styled(f"{name} {sanitize.line(value, 80)}", "$quiet") for name, value in named if value is not None
        ]
        if job.flags:
            parts.append(Content.styled(f"flags {sanitize.line(', '.join(job.flags), 80)}", "$quiet"))
        return Content("  ").join(parts)

    def _why(self, report: JobReport) -> Content:
        if self._failure:
            return Content.styled(self._failure, "$warning")
        if self._gone_at is not None:
            words = f"gone by {formatting.clock(self._gone_at)}: completed or removed; last state below"
            return Content.styled(symbols.WARNING.before(words), "bold $warning")
        messages = ((formatting.padded(sanitize.line(each.message)), each.inferred) for each in report.reasons)
        lines = [f"{message}{' (inferred)' if inferred else ''}" for message, inferred in messages]
        return Content("\n").join(Content(line) for line in lines)

    def _draw_payload(self, report: JobReport) -> None:
        panel = self.query_one("#payload", TextPanel)
        if not self.state.options.show_payload:
            panel.show(Content.styled("Payloads are disabled (--no-payload)", "$quiet"))
            return
        view = self._viewed(report.job.payload_json)
        panel.border_title = Content(_payload_title(view, report.job.payload_json))
        hidden = "" if self._is_unmasked else f"{view.masked} masked, v shows"
        panel.border_subtitle = Content(hidden if view.masked or self._is_unmasked else "")
        panel.show(_coloured(view))

    def _viewed(self, payload: str) -> JsonView:
        """Return the payload as lines; it is parsed again only when something about it has changed."""
        key = (payload, self._is_unmasked)
        if self._payload is None or self._payload[0] != key:
            self._payload = (key, json_view(payload, unmask=self._is_unmasked))
        return self._payload[1]

    def _draw_error(self, report: JobReport) -> None:
        panel = self.query_one("#error", TextPanel)
        error = report.job.last_error
        panel.display = bool(error)
        at = "" if report.failed_at is None else f" (failed {formatting.day(report.failed_at, report.at)})"
        panel.border_title = Content(f"Last error{at}")
        panel.show(Content(sanitize.block(error if self._is_unmasked else masked(error)) if error else ""))

    # -- commands --------------------------------------------------------------------------------------------------

    def action_back(self) -> None:
        self.app.pop_screen()

    def action_unmask(self) -> None:
        self._is_unmasked = not self._is_unmasked
        self._draw()

    def action_previous_job(self) -> None:
        self._go(-1)

    def action_next_job(self) -> None:
        self._go(1)

    def _go(self, step: int) -> None:
        found = None if self._neighbour is None else self._neighbour(self._job_id, step)
        if found is None:
            self.notify("End of list")
            return
        self._job_id, self.report, self._gone_at = found, None, None
        self._ended, self._relations, self._failure = (), NO_RELATIONS, ""
        self.ask()
        self._draw_lines()

    def action_copy(self) -> None:
        if self.report is None or not self.state.options.show_payload:
            return
        payload = self.report.job.payload_json
        if is_too_long(payload):  # before anything is made of it
            self.notify("Payload too large to copy", severity="warning")
            return
        words = "Copied the payload." if self._is_unmasked else "Copied the payload, secrets masked."
        self.console.copy(str(json_view(payload, unmask=self._is_unmasked, whole=True)), words)


# -- texts -----------------------------------------------------------------------------------------------------------


def _payload_title(view: JsonView, payload: str) -> str:
    kind = "batch of " + counted(view.items, "item") if view.items is not None else "json"
    return f"Payload ({kind if view.is_json else 'as it stands'}, {formatting.size(len(payload.encode()))})"


def _coloured(view: JsonView) -> Content:
    lines = [Content.assemble(*((text, STYLES[role]) for text, role in line)) for line in view.lines]
    if view.hidden:
        lines.append(Content.styled(f"… {view.hidden:,} more lines; y copies all", "$quiet italic"))
    return Content("\n").join(lines)


def _timeline(report: JobReport) -> Content:
    """Return where the job came from and where it goes, from the left to the right, by the clock of its reasons."""
    now = report.at
    steps = [f"{name} {formatting.day(time, now)} ({_away(time - now)})" for name, time in _steps(report)]
    return Content.styled(" → ".join(steps), "$quiet")


def _steps(report: JobReport) -> Iterator[tuple[str, datetime]]:
    job = report.job
    yield "created", job.created_at
    if report.failed_at is not None:
        yield "failed", report.failed_at
    if report.state not in (JobState.FAILED, JobState.WAITING):
        yield "due", job.run_at
    if job.started_at is not None:
        yield "started", job.started_at


def _away(away: timedelta) -> str:
    words = formatting.rounded(abs(away))
    return f"in {words}" if away > timedelta() else f"-{words}"


def _gone(ended: Sequence[EndedAttempt] | None, now: datetime) -> str:
    """Return what became of a job that is not in the table, as far as history has it."""
    if ended is None:
        return "no such job; completed jobs are deleted, and it is unknown whether history has an attempt of it"
    if not ended:
        return "no such job; completed jobs are deleted, and history has no attempt of it"
    last = ended[-1]
    return (
        f"{sanitize.line(last.task, 128)} · {last.state} {formatting.day(last.finished_at, now)}, recorded in history"
    )


def _attempts(rows: list[AttemptRow], now: datetime, empty: str = "") -> Content:
    """Return the attempts as a table."""
    head = Content.styled(f"{'#':>4}  {'when':<12} {'wait':>6} note", "bold $quiet")
    lines = [head, *(_attempt(row, now) for row in rows)]
    if not rows:
        lines.append(Content.styled(empty, "$quiet"))
    return Content("\n").join(lines)


def _attempt(row: AttemptRow, now: datetime) -> Content:
    sign = "→" if row.is_next else " "
    about = "≈" if row.certainty is Certainty.INFERRED and row.at is not None else " "
    wait = "" if row.wait is None else formatting.duration(row.wait)
    note = sanitize.line(row.note, 200) or f"{row.certainty}{', last' if row.is_last else ''}"
    text = f"{sign}{row.number:>3} {about}{formatting.day(row.at, now):<12} {wait:>6} {note}"
    return Content.styled(text, "bold" if row.is_next else "$quiet" if row.certainty is Certainty.INFERRED else "")


def _related(relations: JobRelations, now: datetime) -> Iterator[Content]:
    """Yield the steps of a job, who waits for it, and what operators did to it."""
    steps = [
        f"{formatting.day(each.saved_at, now):<12} attempt {each.attempt}"
        f" {'finished' if each.finished else 'cursor of'} {sanitize.line(each.name, 100)}"
        for each in relations.steps or ()
    ]
    waiting = [sanitize.line(each.sentence, 200) for each in relations.groups or ()]
    actions = [
        f"{formatting.day(each.at, now):<12} {sanitize.line(each.sentence, 200)}" for each in relations.actions or ()
    ]
    parts = (
        ("Steps", relations.steps, steps),
        ("Waited for", relations.groups, waiting),
        ("Actions", relations.actions, actions),
    )
    for title, _, lines in parts:
        if lines:
            yield Content.assemble((title, "bold $quiet"), "\n" + "\n".join(lines))
    if unknown := [title.lower() for title, found, _ in parts if found is None]:
        yield Content.styled(f"unknown: {', '.join(unknown)}", "$quiet")
