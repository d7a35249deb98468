"""Named queues: who holds them and for how long, what waits in them, and which job is next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from gw_core.operations import Count, QueueReport, QueueSnapshot
from gw_tui.actions.actions import Act, CountExactly, Unlock
from gw_tui.data.source import QUEUES_AGAIN, Question, Source
from gw_tui.dialogs.choose import Choice
from gw_tui.rules.connection_state import FailureKind
from gw_tui.rules.filter_language import quoted
from gw_tui.screens.jobs import show_jobs
from gw_tui.screens.worker_actions import WorkerActionsMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.widgets.job_rows import when
from gw_tui.widgets.keyed_table import Cell, Column, KeyedTable, Row

if TYPE_CHECKING:
    from gw_tui.data.messages import ActionFinished

PAGE: Final = 100
PATIENCE: Final = 0.25
"""Seconds that one answer looks for names."""

FRESH: Final = timedelta(seconds=10)
"""So long an exact count stands in for the bounded one."""

WIDE: Final = 100

_NARROW_COLUMNS: Final = (
    Column("queue", "queue", least=14, rank=9),
    Column("state", "state", 9, rank=8),
    Column("held_for", "for", 7, right=True, rank=6),
    Column("held_by", "held by", least=12, rank=5),
    Column("waiting", "waiting", 8, right=True, rank=7),
    Column("due", "due", 7, right=True, rank=4),
    Column("head", "next", 10, right=True, rank=3),
)
_WIDE_COLUMNS: Final = (
    *_NARROW_COLUMNS,
    Column("task", "its task", least=12, rank=2),
    Column("run_at", "run at", 10, right=True, rank=1),
)


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Queues whose names hold a text, and the name after which to go on; None when nothing follows."""

    queues: tuple[QueueReport, ...] = ()
    after: str | None = None
    looked_at: int = 0


@dataclass(frozen=True, slots=True)
class ExactCount:
    """What an exact count of one queue brought."""

    name: str
    waiting: Count
    due: Count
    at: datetime

    def words(self, now: datetime) -> str:
        """Return it in words, with its age."""
        numbers = f"{self.waiting.value:,} waiting, {self.due.value:,} due"
        return f"{sanitize.line(self.name, 30)}: {numbers}, counted {formatting.span(now - self.at)} ago"


@dataclass(frozen=True)
class QueuesQuestion(Question):
    """A page of queues in order of their names."""

    every: ClassVar[timedelta | None] = QUEUES_AGAIN

    after: str = ""
    text: str = ""
    only_held: bool = False

    def ask(self, source: Source) -> QueuePage:
        """Return those that match, looking no longer than a fraction of a second."""
        until, after, looked_at = monotonic() + PATIENCE, self.after, 0
        found: list[QueueReport] = []
        while True:
            page = source.queues(after=after, limit=PAGE, only_held=self.only_held)
            looked_at += len(page)
            found += [each for each in page if self.text.lower() in each.name.lower()]
            if len(page) < PAGE:
                return QueuePage(tuple(found), None, looked_at)
            after = page[-1].name
            if len(found) >= PAGE or monotonic() >= until:
                return QueuePage(tuple(found), after, looked_at)


class QueuesScreen(WorkerActionsMixin):
    """A page of named queues."""

    PLACE = "queues"

    # Before the list has its say: what is typed right after it belongs to the filter.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="filter", show=False, priority=True)
    ]

    CSS = """
    QueuesScreen #page { height: 1; padding: 0 1; color: $quiet; text-wrap: nowrap; text-overflow: ellipsis; }
    QueuesScreen #text { height: 1; border: none; padding: 0 1; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._begins: tuple[str, ...] = ("",)
        self._text = ""
        self._only_held = False
        self._found: QueuePage | None = None
        self._counted: ExactCount | None = None
        self._trouble = ""

    def body(self) -> ComposeResult:
        """Lay out the line about the page, and the queues."""
        entry = Input(id="text", placeholder="part of a name; held: before it shows only held queues")
        entry.cursor_blink = False
        entry.display = False
        yield entry
        yield Static("", id="page", markup=False)
        yield KeyedTable(_NARROW_COLUMNS, empty="There are no named queues.", id="queues")

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def question(self) -> QueuesQuestion:
        """Return the page to ask for."""
        return QueuesQuestion(after=self._begins[-1], text=self._text, only_held=self._only_held)

    def show_answer(self, question: Question, answer: object) -> None:
        """Show the page."""
        if question == self.question() and isinstance(answer, QueuePage):
            self._found, self._trouble = answer, ""
            self._draw()

    def show_glance(self, glance: QueueSnapshot) -> None:
        """Judge anew whose worker is dead."""
        self._draw()

    def show_time(self) -> None:
        """Let ages go on."""
        self._draw()

    def show_trouble(self, trouble: FailureKind, sentence: str) -> None:
        """Say why there is no answer."""
        self._trouble = sanitize.line(f"{trouble}: {sentence}", 200)
        self._draw()

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def _table(self) -> KeyedTable:
        return self.query_one(KeyedTable)

    def _draw(self) -> None:
        if not self.stands:
            return
        if self._found is not None:
            now, dead = self.console.now, self._dead()
            self._table.say_when_empty("No queue matches." if self._is_narrowed else "There are no named queues.")
            self._table.apply(_row(self._best(each), now, dead) for each in self._found.queues)
        style = "$warning" if self._trouble else "$quiet"
        self.query_one("#page", Static).update(Content.styled(self._words(), style))

    def _best(self, queue: QueueReport) -> QueueReport:
        """Return a queue with the best numbers known: those of an exact count while it is fresh."""
        counted = self._counted
        if counted is None or counted.name != queue.name or self.console.now - counted.at > FRESH:
            return queue
        return replace(queue, waiting=counted.waiting, due=counted.due)

    @property
    def _is_narrowed(self) -> bool:
        return bool(self._text) or self._only_held

    def _dead(self) -> frozenset[str]:
        glance = self.console.glance
        return frozenset() if glance is None else frozenset(each.id for each in glance.workers if each.is_stale)

    def _words(self) -> str:
        if self._trouble:
            return self._trouble
        found = self._found
        if found is None:
            return "looking…"
        words = [f"page {len(self._begins)}", formatting.counted(len(found.queues), "queue"), "by name"]
        if (glance := self.console.glance) is not None:
            more = "" if glance.held_queues_are_all else "+"
            words.insert(2, f"{len(glance.held_queues)}{more} held in all")
        if self._is_narrowed:
            narrowed = f"{'held, ' * self._only_held}{f'with {self._text!r}' if self._text else ''}".rstrip(", ")
            words.insert(0, sanitize.line(narrowed))
        if (beat := self._beat_of_holder()) is not None:
            words.append(f"holder's last beat {formatting.span(beat)} ago")
        if self._counted is not None:
            words.append(self._counted.words(self.console.now))
        if found.after is not None:
            words.append(f"n goes on after {sanitize.line(found.after, 30)!r}")
        return " · ".join(words)

    def _beat_of_holder(self) -> timedelta | None:
        """Return how long ago the heart of the worker beat that holds the queue under the cursor."""
        glance, holder = self.console.glance, self.holder()
        workers = () if glance is None or holder is None else glance.workers
        age = next((each.heartbeat_age for each in workers if each.id == holder), None)
        return None if glance is None or age is None else age + max(timedelta(), self.console.now - glance.at)

    def on_resize(self, event: events.Resize) -> None:
        """Show as many columns as there is room for."""
        super().on_resize(event)
        self._table.set_columns(_WIDE_COLUMNS if event.size.width >= WIDE else _NARROW_COLUMNS)

    # -- commands --------------------------------------------------------------------------------------------------

    @property
    def highlighted(self) -> QueueReport | None:
        """The queue under the cursor, as it was last seen."""
        queues: Sequence[QueueReport] = () if self._found is None else self._found.queues
        return next((each for each in queues if each.name == self._table.highlighted), None)

    def holder(self) -> str | None:
        """Return the worker that holds the queue under the cursor."""
        return None if self.highlighted is None else self.highlighted.held_by

    def offered(self) -> Sequence[tuple[Choice, Act]]:
        """Return what can be done about the queue under the cursor."""
        if (worker_id := self.holder()) is None:
            return ()
        return ((Choice("unlock", "unlock", sanitize.line(worker_id, 50)), Unlock(workers=(worker_id,))),)

    def action_exact(self) -> None:
        """Count every job that waits in the queue under the cursor."""
        if (name := self._table.highlighted) is not None:
            self.notify(f"Counting {sanitize.line(name, 60)} …", markup=False)
            self.console.act(CountExactly(queue=name))

    def show_acted(self, acted: ActionFinished) -> None:
        """Take in an exact count."""
        if not (isinstance(acted.act, CountExactly) and acted.act.queue is not None):
            return
        if acted.result is None or acted.result.queue is None:
            self.notify(sanitize.line(acted.sentence, 200), severity="warning", markup=False)
            return
        self._counted = ExactCount(acted.act.queue, *acted.result.queue, self.console.now)
        self._draw()

    async def action_open(self) -> None:
        """Go to the jobs of the queue under the cursor."""
        if (name := self._table.highlighted) is not None:
            await show_jobs(self.console, f"queue:{quoted(name)}")

    def action_next_page(self) -> None:
        """Show the next page."""
        if self._found is None or self._found.after is None:
            self.notify("This is the last page.")
        else:
            self._turn_to((*self._begins, self._found.after))

    def action_previous_page(self) -> None:
        """Show the page before."""
        if len(self._begins) == 1:
            self.notify("This is the first page.")
        else:
            self._turn_to(self._begins[:-1])

    def _turn_to(self, begins: tuple[str, ...]) -> None:
        self._begins = begins
        self._found = None
        self._table.say_when_empty("Looking…")
        self._table.replace([])
        self.ask()
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell whether a command is possible; within a name the key of the filter is a character."""
        if action == "filter" and self.stands and self.query_one("#text").display:
            return False
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        """Let a part of a name be typed."""
        entry = self.query_one("#text", Input)
        entry.display = True
        entry.value = f"{'held:' * self._only_held}{self._text}"
        self.set_focus(entry)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Show the queues that match."""
        event.stop()
        text = sanitize.UNSAFE.sub(" ", event.value).strip()
        self._only_held = text.startswith("held:")
        self._text = text.removeprefix("held:").strip()
        self._close_entry()
        self._turn_to(("",))

    def on_descendant_blur(self) -> None:
        """Typing ends when something else is focused."""
        entry = self.query_one("#text")
        if self.app.app_focus and self.focused is not entry:
            entry.display = False

    def _close_entry(self) -> None:
        self.query_one("#text").display = False
        self._table.focus()

    def action_back(self) -> None:
        """Close the line for typing, or show all queues again."""
        if self.query_one("#text").display:
            self._close_entry()
        elif self._is_narrowed or len(self._begins) > 1:
            self._text, self._only_held = "", False
            self._turn_to(("",))

    def action_copy(self) -> None:
        """Copy the name of the queue under the cursor."""
        if (name := self._table.highlighted) is not None:
            self.console.copy(name)


def _row(queue: QueueReport, now: datetime, dead: frozenset[str]) -> Row:
    is_stuck = queue.held_by in dead
    return Row(
        queue.name,
        {
            "queue": Cell(queue.name, "strong" if queue.held_at is not None else ""),
            "state": _state(queue, is_stuck=is_stuck),
            "held_for": "" if queue.held_at is None else formatting.span(now - queue.held_at),
            "held_by": Cell(queue.held_by or "", "error" if is_stuck else ""),
            "waiting": formatting.count(queue.waiting),
            "due": formatting.count(queue.due),
            "head": "" if queue.head_id is None else str(queue.head_id),
            "task": queue.head_task or "",
            "run_at": "" if queue.head_run_at is None else Cell(when(queue.head_run_at, now), "quiet"),
        },
    )


def _state(queue: QueueReport, *, is_stuck: bool) -> Cell:
    """Return in a word how a queue stands."""
    if is_stuck:
        return Cell(f"{symbols.WARNING} stuck", "error")
    if queue.held_at is not None:
        return Cell(f"{symbols.STATE_GLYPHS['running']} held", "running")
    if queue.due.value:
        return Cell(f"{symbols.STATE_GLYPHS['ready']} ready", "ready")
    if queue.waiting.value:
        return Cell(f"{symbols.STATE_GLYPHS['scheduled']} later", "scheduled")
    return Cell("  empty", "quiet")
