"""The doctor's findings and their fixes, lock waits, and what prevents the removal of dead rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from gw_core.front_ends import BackendSession, CheckStatus, CleanupTarget, LockWaits, counted
from gw_core.operations import Finding
from gw_tui.actions import Action, Cleanup
from gw_tui.data.source import DataSource, Query, known
from gw_tui.dialogs.choose import Choice
from gw_tui.maintenance import CHOICES, SWEEP
from gw_tui.screens.list_screen import LOADING, UNKNOWN, ListScreen
from gw_tui.screens.pause_actions import SessionMixin
from gw_tui.text import formatting, sanitize, symbols
from gw_tui.text.redact import masked
from gw_tui.text.symbols import Symbol
from gw_tui.widgets.keyed_table import KeyedTable
from gw_tui.widgets.table_rows import Cell, TableColumn, TableRow, duration_cell, sign_cell
from gw_tui.widgets.text_panel import TextPanel

_SESSION_COLUMNS: Final = (
    TableColumn("what", "what", 20, rank=9),
    TableColumn("pid", "pid", 8, right=True, rank=8),
    TableColumn("age", "age", 7, right=True, rank=7),
    TableColumn("who", "who", least=12, rank=6),
    TableColumn("detail", "waits for / statement", least=16, rank=5),
)
NO_WAITS: Final = "No lock waits"
MEMBERS: Final = "flag:gw:group"
"""The filter for the members of groups."""
OLD_TRANSACTION: Final = timedelta(minutes=1)
"""From this age on a transaction is listed although no session waits for it."""
_VERDICTS: Final = {
    CheckStatus.OK: (symbols.OK, 2),
    CheckStatus.WARNING: (symbols.WARNING, 1),
    CheckStatus.ERROR: (symbols.ALARM, 0),
}


@dataclass(frozen=True, slots=True)
class LocksData:
    """What the doctor and the lock tables say; None is unknown."""

    findings: Sequence[Finding] | None
    blockages: LockWaits | None


@dataclass(frozen=True)
class LocksQuery(Query):
    """What is wrong, and what stands still."""

    every: ClassVar[timedelta | None] = timedelta(seconds=5)

    def ask(self, source: DataSource) -> LocksData:
        return LocksData(known(source.findings), known(source.blockages))


@dataclass(frozen=True, slots=True)
class BlockedSession:
    """What the pane shows about a session that waits, blocks or lasts."""

    title: str
    pid: str
    lines: Sequence[tuple[str, str]]
    session: BackendSession | None = None


class LocksScreen(SessionMixin, ListScreen[LocksData, Finding]):
    """Findings above, sessions that wait, block or last below, and everything about the one under the cursor."""

    SCREEN_ID = "locks"
    TABLE = "findings"
    COLUMNS = (
        TableColumn("verdict", "status", 9, rank=9),
        TableColumn("check", "what", 14, rank=8),
        TableColumn("words", "finding", least=20, rank=7),
    )
    EMPTY = "No findings"
    AUTO_FOCUS = "#findings"
    PREVIEW = "below"
    VERTICAL_BREAKPOINTS = [(0, "-is-low"), (34, "-is-high")]  # noqa: RUF012 - as the base class has it

    CSS = """
    LocksScreen #findings { height: 3fr; }
    LocksScreen #sessions-panel { height: 2fr; min-height: 5; }
    LocksScreen #below { height: 6; }
    LocksScreen.-is-high #below { height: 9; }
    """

    def body(self) -> ComposeResult:
        *above, details = super().body()
        yield from above
        with Vertical(id="sessions-panel", classes="panel group") as panel:
            panel.border_title = "Lock waits and long transactions"
            yield KeyedTable(_SESSION_COLUMNS, empty=LOADING, id="sessions")
        yield details

    # -- what is asked and answered ----------------------------------------------------------------------------------

    def current_query(self) -> Query | None:
        return LocksQuery()

    def show_time(self) -> None:
        """Leave everything as it is: its ages come with the answer."""

    def on_descendant_focus(self) -> None:
        """Describe the row under the other table's cursor."""
        super().on_descendant_focus()
        self.draw_preview()

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def highlighted(self) -> Finding | BlockedSession | None:
        """What the cursor is on."""
        sessions = self.query_one("#sessions", KeyedTable)
        return cast("BlockedSession | None", sessions.selected) if self.focused is sessions else self.selected

    def draw(self) -> None:
        if self.stands and self.answer is not None:
            sessions, blockages = self.query_one("#sessions", KeyedTable), self.answer.blockages
            sessions.say_when_empty(UNKNOWN if blockages is None else NO_WAITS)
            sessions.apply(() if blockages is None else _sessions(blockages))
            if self._named in sessions.keys:
                sessions.move_to(self._named)
                sessions.focus()
                self._named = ""
            more = "" if blockages is None or blockages.is_all else "more not shown"
            self.query_one("#sessions-panel", Vertical).border_subtitle = Content(more)
        super().draw()

    def rows(self, known: LocksData) -> Iterator[TableRow]:
        """Yield the findings, what is wrong first; one check may find several things."""
        numbers: dict[str, int] = {}
        for each in sorted(known.findings or (), key=lambda each: _VERDICTS[each.status][1]):
            numbers[each.check] = number = numbers.get(each.check, 0) + 1
            yield _finding_row(f"{each.check}/{number}", each)

    def emptiness(self, known: LocksData) -> str:
        return self.EMPTY if known.findings is not None else UNKNOWN

    def status(self, known: LocksData) -> Iterator[str]:
        if known.findings is None:
            yield "findings unknown"
        else:
            verdicts = [each.status for each in known.findings]
            wrong = verdicts.count(CheckStatus.ERROR)
            yield counted(wrong, "error") if wrong else "no errors"
            yield counted(verdicts.count(CheckStatus.WARNING), "warning")
            yield f"{verdicts.count(CheckStatus.OK)} ok"
        if known.blockages is None:
            yield "lock waits unknown"
        else:
            blocked = len(known.blockages.blocked)
            yield f"{blocked} blocked" if blocked else "none blocked"

    def preview(self) -> Content:
        if (found := self.highlighted) is None:
            return Content("")
        title = found.check if isinstance(found, Finding) else found.title
        self.query_one("#below", TextPanel).border_title = Content(sanitize.line(title, 60))
        return _about_finding(found) if isinstance(found, Finding) else _listed(found.lines)

    # -- commands --------------------------------------------------------------------------------------------------

    def session_target(self) -> BackendSession | None:
        found = self.highlighted
        return found.session if isinstance(found, BlockedSession) else None

    def action_sweep(self) -> None:
        self.maintenance.sweep()

    def action_cleanup(self) -> None:
        self.maintenance.clean_up()

    def action_back(self) -> None:
        self.table.focus()

    def action_open(self) -> None:
        """List the members of waiting groups; otherwise go to the pane, to read all of it."""
        match self.highlighted:
            case Finding(check="groups", status=CheckStatus.OK):
                self.console.visit("jobs", MEMBERS)
            case Finding(check="groups", status=CheckStatus.WARNING):
                # Only a member that failed permanently makes this a warning; an error has no member left.
                self.console.visit("jobs", f"{MEMBERS} state:failed")
            case _:
                self.query_one("#below", TextPanel).focus()

    def available_actions(self) -> Sequence[tuple[Choice, Action]]:
        snapshot = self.state.snapshot
        found: list[tuple[Choice, Action]] = []
        if snapshot is not None and any(each.is_stale for each in snapshot.workers):
            found.append(SWEEP)
        for choice in CHOICES:
            named = Choice(choice.id, f"clean up {choice.label}", choice.words)
            found.append((named, Cleanup(target=CleanupTarget(choice.id))))
        return found

    def action_copy(self) -> None:
        match self.highlighted:
            case Finding(fix=str() as fix):
                self.console.copy(fix)
            case BlockedSession(pid=pid) if pid:
                self.console.copy(pid)
            case _:
                self.notify("No fix to copy")


# -- rows and texts --------------------------------------------------------------------------------------------------


def _finding_row(key: str, finding: Finding) -> TableRow:
    symbol, _ = _VERDICTS[finding.status]
    quiet = "quiet" if finding.status is CheckStatus.OK else ""
    return TableRow(
        key,
        {
            "verdict": sign_cell(symbol, str(finding.status)),
            "check": Cell(finding.check, "" if quiet else "strong"),
            "words": Cell(masked(formatting.padded(finding.message)), quiet),
        },
        finding,
    )


def _about_finding(finding: Finding) -> Content:
    words = Content(sanitize.line(masked(formatting.padded(finding.message)), 2_000))
    if finding.fix is None:
        return words
    remedy = (sanitize.line(finding.fix, 2_000), "bold")
    return Content.assemble(words, "\n", ("Fix (y copies it):", "$quiet"), "\n", remedy)


def _sessions(blockages: LockWaits) -> Iterator[TableRow]:
    """Yield a row for each session that waits, blocks, holds a lock of ours, or has lasted long."""
    for session in blockages.blockers:
        yield _of_session("blocker", symbols.ALARM, "blocks others", session)
    for blocked in blockages.blocked:
        by = ", ".join(map(str, blocked.blocked_by))
        detail = f"{blocked.waits_for}, by {by}"
        yield _of_session("blocked", symbols.WARNING, "blocked", blocked.session, detail)
    for lock in blockages.advisory:
        is_normal = lock.granted and lock.is_respected
        symbol, words = (
            symbols.NOTE if is_normal else symbols.WARNING,
            "holds lock" if lock.granted else "waits for lock",
        )
        yield _of_session(f"advisory {lock.name}", symbol, words, lock.session, f"lock of {lock.name}")
    shown = {session.pid for session in blockages.blockers}
    for session in blockages.oldest_transactions:
        if session.pid not in shown and (session.transaction_age or timedelta()) >= OLD_TRANSACTION:
            yield _of_session("oldest", symbols.WARNING, "old transaction", session)
    for name, age in blockages.prepared_transactions:
        lines = (("name", sanitize.line(name)), ("to end it", "commit prepared or rollback prepared, with its name"))
        cells = {
            "what": sign_cell(symbols.WARNING, "prepared"),
            "age": duration_cell(age),
            "detail": Cell(name, "quiet"),
        }
        yield TableRow(f"prepared {name}", cells, BlockedSession("prepared ", "", lines))


def _of_session(kind: str, symbol: Symbol, what: str, session: BackendSession, detail: str = "") -> TableRow:
    who = " ".join(each for each in (session.user, session.application) if each)
    statement = "not visible to this role" if session.statement is None else masked(session.statement)
    lines = (
        ("who", sanitize.line(who)),
        ("state", f"{sanitize.line(session.state or 'unknown')} for {formatting.duration(session.in_state_for)}"),
        *((("waits for", sanitize.line(detail)),) if detail else ()),
        ("statement", sanitize.line(statement, 2_000)),
        ("to end it", f"E, or select pg_terminate_backend({session.pid})"),
    )
    age = session.transaction_age if session.transaction_age is not None else session.in_state_for
    pid = str(session.pid)
    return TableRow(
        f"{kind} {pid}",
        {
            "what": sign_cell(symbol, what),
            "pid": pid,
            "age": Cell(formatting.NOTHING) if age is None else duration_cell(age),
            "who": who,
            "detail": Cell(detail or statement, "quiet"),
        },
        BlockedSession(f"{what} {pid}", pid, lines, session),
    )


def _listed(lines: Sequence[tuple[str, str]]) -> Content:
    return Content("\n").join(Content.assemble((f"{name:<10}", "$quiet"), text) for name, text in lines)
