"""What the doctor says and what mends it, who blocks whom, and what keeps dead rows alive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from gw_core.operations import BackendSession, CheckStatus, CleanupTarget, Finding, LockWaits
from gw_tui.actions.actions import Act, Clean, Sweep
from gw_tui.data.source import Question, Source
from gw_tui.dialogs.choose import Choice
from gw_tui.maintenance import CHOICES
from gw_tui.rules.connection_state import FailureKind
from gw_tui.screens.worker_actions import CleanupMixin, SweepMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.redact import masked
from gw_tui.widgets.keyed_table import Cell, Column, KeyedTable, Row
from gw_tui.widgets.text_panel import TextPanel

_FINDING_COLUMNS: Final = (
    Column("verdict", "verdict", 8, rank=9),
    Column("check", "what", 14, rank=8),
    Column("words", "finding", least=20, rank=7),
)
_SESSION_COLUMNS: Final = (
    Column("what", "what", 20, rank=9),
    Column("pid", "pid", 8, right=True, rank=8),
    Column("age", "age", 7, right=True, rank=7),
    Column("who", "who", least=12, rank=6),
    Column("detail", "waits for / statement", least=16, rank=5),
)
_VERDICTS: Final = {
    CheckStatus.OK: (symbols.DONE, "ready", 2),
    CheckStatus.NOTE: ("i", "quiet", 1),
    CheckStatus.WRONG: (symbols.STATE_GLYPHS["failed"], "error", 0),
}


@dataclass(frozen=True, slots=True)
class Health:
    """What the doctor and the lock tables say."""

    findings: tuple[Finding, ...]
    blockages: LockWaits


@dataclass(frozen=True)
class HealthQuestion(Question):
    """What is wrong, and what stands still."""

    every: ClassVar[timedelta | None] = timedelta(seconds=5)

    def ask(self, source: Source) -> Health:
        """Return both."""
        return Health(tuple(source.findings()), source.blockages())


@dataclass(frozen=True, slots=True)
class BlockedSession:
    """One row about sessions: what about it, and its details for the pane."""

    key: str
    what: str
    role: str
    pid: str
    age: timedelta | None
    who: str
    detail: str
    lines: tuple[tuple[str, str], ...] = field(default=())


class LocksScreen(SweepMixin, CleanupMixin):
    """Findings above, sessions that wait, block or last below, and everything about the one under the cursor."""

    PLACE = "locks"
    AUTO_FOCUS = "#findings"

    CSS = """
    LocksScreen #line { height: 1; padding: 0 1; color: $quiet; text-wrap: nowrap; text-overflow: ellipsis; }
    LocksScreen #findings { height: 3fr; }
    LocksScreen #sessions-panel { height: 2fr; min-height: 5; }
    LocksScreen #about { height: 6; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._health: Health | None = None
        self._standstills: Mapping[str, BlockedSession] = {}
        self._trouble = ""

    def body(self) -> ComposeResult:
        """Lay out both tables and the pane."""
        yield Static("", id="line", markup=False)
        yield KeyedTable(_FINDING_COLUMNS, empty="Nothing was found.", id="findings")
        with Vertical(id="sessions-panel", classes="panel") as panel:
            panel.border_title = "Waiting, blocking, lasting"
            yield KeyedTable(_SESSION_COLUMNS, empty="Nobody waits for anybody.", id="sessions")
        yield TextPanel("About it", id="about")

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def question(self) -> Question | None:
        """Return the question about what is wrong."""
        return HealthQuestion()

    def show_answer(self, question: Question, answer: object) -> None:
        """Show what is wrong."""
        if isinstance(answer, Health):
            self._health, self._trouble = answer, ""
            self._standstills = {each.key: each for each in _standstills(answer.blockages)}
            self._draw()

    def show_trouble(self, trouble: FailureKind, sentence: str) -> None:
        """Say why there is no answer."""
        self._trouble = sanitize.line(f"{trouble}: {sentence}", 200)
        self._draw()

    @on(KeyedTable.Highlighted)
    def _look_at_another(self) -> None:
        """Tell about what the cursor is on now."""
        self._draw_about()

    def on_descendant_focus(self) -> None:
        """Tell about what the cursor of the other table is on."""
        super().on_descendant_focus()
        self._draw_about()

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def highlighted(self) -> Finding | BlockedSession | None:
        """What the cursor is on."""
        sessions = self.query_one("#sessions", KeyedTable)
        if self.focused is sessions:
            return self._standstills.get(sessions.highlighted or "")
        key = self.query_one("#findings", KeyedTable).highlighted
        return next((each for name, each in self._findings() if name == key), None)

    def _findings(self) -> Iterator[tuple[str, Finding]]:
        """Yield the findings with keys, what is wrong first; one check may find several things."""
        found = () if self._health is None else self._health.findings
        numbers: dict[str, int] = {}
        for each in sorted(found, key=lambda each: _VERDICTS[each.verdict][2]):
            numbers[each.check] = number = numbers.get(each.check, 0) + 1
            yield f"{each.check}/{number}", each

    def _draw(self) -> None:
        if not self.stands:
            return
        if self._health is not None:
            self.query_one("#findings", KeyedTable).apply(_finding_row(key, each) for key, each in self._findings())
            self.query_one("#sessions", KeyedTable).apply(map(_standstill_row, self._standstills.values()))
            more = "" if self._health.blockages.is_all else "there are more"
            self.query_one("#sessions-panel", Vertical).border_subtitle = Content(more)
            self._draw_about()
        self.query_one("#line", Static).update(Content.styled(self._words(), "$warning" if self._trouble else "$quiet"))

    def _words(self) -> str:
        if self._trouble or self._health is None:
            return self._trouble or "looking…"
        verdicts = [each.verdict for each in self._health.findings]
        wrong, blocked = verdicts.count(CheckStatus.WRONG), len(self._health.blockages.blocked)
        words = [
            f"{wrong} wrong" if wrong else "nothing wrong",
            formatting.counted(verdicts.count(CheckStatus.NOTE), "note"),
            f"{verdicts.count(CheckStatus.OK)} ok",
            f"{blocked} blocked" if blocked else "nobody is blocked",
        ]
        return " · ".join(words)

    def _draw_about(self) -> None:
        if not self.stands:
            return
        panel = self.query_one("#about", TextPanel)
        found = self.highlighted
        if found is None:
            panel.show(Content(""))
        elif isinstance(found, Finding):
            panel.border_title = Content(sanitize.line(found.check, 60))
            panel.show(_about_finding(found))
        else:
            panel.border_title = Content(sanitize.line(f"{found.what} {found.pid}", 60))
            panel.show(_listed(found.lines))

    def on_resize(self, event: events.Resize) -> None:
        """Give the pane more room where there is some."""
        super().on_resize(event)
        self.query_one("#about").styles.height = 6 if event.size.height < 34 else 9

    # -- commands --------------------------------------------------------------------------------------------------

    def action_back(self) -> None:
        """Go back to the findings."""
        self.query_one("#findings", KeyedTable).focus()

    def action_open(self) -> None:
        """Go to the pane, to read all of it."""
        self.query_one("#about", TextPanel).focus()

    def offered(self) -> Sequence[tuple[Choice, Act]]:
        """Return what keeps the queue in order."""
        glance = self.console.glance
        found: list[tuple[Choice, Act]] = []
        if glance is not None and any(each.is_stale for each in glance.workers):
            found.append((Choice("sweep", "sweep", "give back the jobs of all dead workers"), Sweep()))
        for choice in CHOICES:
            named = Choice(choice.id, f"clear away {choice.label}", choice.words)
            found.append((named, Clean(litter=CleanupTarget(choice.id))))
        return found

    def action_copy(self) -> None:
        """Copy what mends a finding, or the process under the cursor."""
        match self.highlighted:
            case Finding(remedy=str() as remedy):
                self.console.copy(remedy)
            case BlockedSession(pid=pid) if pid:
                self.console.copy(pid)
            case _:
                self.notify("There is nothing to mend.")


# -- rows and texts --------------------------------------------------------------------------------------------------


def _finding_row(key: str, finding: Finding) -> Row:
    sign, role, _ = _VERDICTS[finding.verdict]
    quiet = "quiet" if finding.verdict is CheckStatus.OK else ""
    return Row(
        key,
        {
            "verdict": Cell(f"{sign} {finding.verdict}", role),
            "check": Cell(finding.check, "" if quiet else "strong"),
            "words": Cell(masked(finding.words), quiet),
        },
    )


def _about_finding(finding: Finding) -> Content:
    words = Content(sanitize.line(masked(finding.words), 2_000))
    if finding.remedy is None:
        return words
    remedy = (sanitize.line(finding.remedy, 2_000), "bold")
    return Content.assemble(words, "\n", ("to mend it (y copies):", "$quiet"), "\n", remedy)


def _standstills(blockages: LockWaits) -> Iterator[BlockedSession]:
    """Yield a row for each session that waits, blocks, holds a lock of ours, or has lasted long."""
    for blocked in blockages.blocked:
        by = ", ".join(map(str, blocked.blocked_by))
        detail = f"{blocked.waits_for}, by {by}"
        yield _of_session("blocked", f"{symbols.WARNING} blocked", "error", blocked.session, detail)
    for session in blockages.blockers:
        yield _of_session("blocker", f"{symbols.STATE_GLYPHS['failed']} blocks others", "error", session)
    for lock in blockages.advisory:
        words = f"{symbols.STATE_GLYPHS['running']} holds" if lock.granted else f"{symbols.WARNING} waits for"
        role = "running" if lock.granted else "warning"
        yield _of_session(f"advisory {lock.name}", f"{words} lock", role, lock.session, f"lock of {lock.name}")
    shown = {session.pid for session in blockages.blockers}
    for session in blockages.oldest_transactions:
        if session.pid not in shown:
            yield _of_session("oldest", f"{symbols.STATE_GLYPHS['scheduled']} old transaction", "", session)
    for name, age in blockages.prepared_transactions:
        lines = (("name", sanitize.line(name)), ("to end it", "commit prepared or rollback prepared, with its name"))
        yield BlockedSession(f"prepared {name}", f"{symbols.WARNING} prepared", "warning", "", age, "", name, lines)


def _of_session(kind: str, what: str, role: str, session: BackendSession, detail: str | None = None) -> BlockedSession:
    who = " ".join(each for each in (session.user, session.application) if each)
    statement = "not ours to see" if session.statement is None else masked(session.statement)
    lines = (
        ("who", sanitize.line(who)),
        ("state", f"{sanitize.line(session.state or 'unknown')} for {formatting.span(session.in_state_for)}"),
        *((("waits for", sanitize.line(detail)),) if detail else ()),
        ("statement", sanitize.line(statement, 2_000)),
        ("to end it", f"select pg_terminate_backend({session.pid})"),
    )
    age = session.transaction_age if session.transaction_age is not None else session.in_state_for
    return BlockedSession(f"{kind} {session.pid}", what, role, str(session.pid), age, who, detail or statement, lines)


def _standstill_row(each: BlockedSession) -> Row:
    return Row(
        each.key,
        {
            "what": Cell(each.what, each.role),
            "pid": each.pid,
            "age": formatting.span(each.age),
            "who": each.who,
            "detail": Cell(each.detail, "quiet"),
        },
    )


def _listed(lines: tuple[tuple[str, str], ...]) -> Content:
    return Content("\n").join(Content.assemble((f"{name:<10}", "$quiet"), text) for name, text in lines)
