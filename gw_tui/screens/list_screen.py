"""A screen with a table under a status line; subclasses declare columns, rows and status."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar, cast

from textual import events, work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from gw_tui.dialogs.columns import ChooseColumns
from gw_tui.rules.journal import EntryKind
from gw_tui.rules.preferences import TableChoice, TableSort
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import sanitize
from gw_tui.widgets.keyed_table import KeyedTable
from gw_tui.widgets.table_rows import TableColumn, TableRow
from gw_tui.widgets.text_panel import TextPanel

if TYPE_CHECKING:
    from gw_core.front_ends import QueueSnapshot
    from gw_tui.data.source import Query
    from gw_tui.rules.connection_state import FailureKind
    from gw_tui.rules.preferences import SavedView

LOADING: Final = "Loading…"
UNKNOWN: Final = "Unknown"
WIDE: Final = 100
ANY_WIDTH: Final = 10_000


A = TypeVar("A")
T = TypeVar("T")


class ListScreen(ConsoleScreen, Generic[A, T]):
    """Draws its rows and its status when a snapshot, an answer to its query or the time changes them.

    `A` is the answer to its query, `T` what a row describes.
    """

    TABLE: ClassVar[str] = ""
    """The id of the table."""
    COLUMNS: ClassVar[Sequence[TableColumn]] = ()
    WIDE_COLUMNS: ClassVar[Sequence[TableColumn]] = ()
    EMPTY: ClassVar[str] = "No rows"
    SORT_NOTE: ClassVar[str] = ""
    """What the operator must know about sorting; a list of pages sorts the page shown only."""

    PREVIEW: ClassVar[str] = ""
    """The panel with everything about the selected row: `beside` the list on wide terminals, or `below` it."""

    def __init__(self) -> None:
        super().__init__()
        self.choice = TableChoice()
        """The columns and the order that the operator chose."""
        self.is_view = False
        """Whether the columns and the order are those of a saved view."""
        self.failure = ""
        """Why the last query failed; empty when it did not."""
        self.answer: A | None = None
        """The last answer to the query; None while it is loading."""
        self._named = ""  # the row that the cursor goes to, as soon as there are rows

    def body(self) -> ComposeResult:
        yield Static("", id="status", classes="status", markup=False)
        yield self.new_table()
        if self.PREVIEW:
            yield TextPanel("Details", id=self.PREVIEW)

    # -- for subclasses --------------------------------------------------------------------------------------------

    def new_table(self) -> KeyedTable:
        """Return the table to lay out."""
        return KeyedTable(self.COLUMNS, id=self.TABLE)

    @property
    def known(self) -> A | None:
        """What rows and status are drawn from; None while it is loading."""
        return self.answer

    def rows(self, known: A) -> Iterable[TableRow] | None:
        """Return the rows to show; None to leave those that are shown."""
        raise NotImplementedError

    def emptiness(self, known: A) -> str:
        """Return what the list shows without rows: that there are none only if that is known."""
        return self.EMPTY

    def status(self, known: A) -> Iterable[str]:
        """Yield the parts of the status line."""
        raise NotImplementedError

    def preview(self) -> Content:
        """Return everything about the selected row."""
        return Content("")

    @property
    def has_warning(self) -> bool:
        """True when the status line shows a warning."""
        return bool(self.failure)

    def columns_for(self, width: int) -> Sequence[TableColumn]:
        """Return the columns that fit."""
        return self.WIDE_COLUMNS if self.WIDE_COLUMNS and width >= WIDE else self.COLUMNS

    def sort_words(self, sort: TableSort) -> str:
        """Return what the rows are sorted by."""
        title = next((each.title for each in self.all_columns if each.key == sort.column), sort.column)
        return f"{'page ' * bool(self.SORT_NOTE)}by {title} {sort.arrow}"

    def keep_filter(self, text: str) -> None:
        """Let `:` recall a filter that was typed, also after it was cleared."""
        if text:
            self.state.keep_line(f"{self.SCREEN_ID} {text}")

    # -- columns and order -------------------------------------------------------------------------------------------

    @property
    def all_columns(self) -> Sequence[TableColumn]:
        """The columns to choose from."""
        return self.columns_for(ANY_WIDTH)

    def on_mount(self) -> None:
        """Begin with the columns and the order chosen before."""
        self.use_choice(self.state.options.preferences.choice(self.SCREEN_ID))

    def use_choice(self, choice: TableChoice) -> None:
        """Show these columns in this order."""
        self.is_view = False
        self.choice = choice.possible(each.key for each in self.all_columns)
        self.table.set_columns(self._columns(self.size.width))
        self.use_sort(self.choice.sort)

    def take_filter(self, text: str) -> None:
        """Put the cursor on the row of this name, or on the first one that belongs to it."""
        self._named = text
        self.draw()

    def _move_to_named(self) -> None:
        name, self._named = self._named, ""
        if not name:
            return
        keys = [key for key in self.table.keys if key == name or key.startswith(f"{name}/")]
        if keys:
            self.table.move_to(min(keys, key=len))
        else:
            self.notify(f"{sanitize.line(name, 60)} is not in this list", severity="warning")

    def show_view(self, view: SavedView) -> None:
        self.use_choice(view.choice)
        self.is_view = True
        super().show_view(view)

    def use_sort(self, sort: TableSort | None) -> None:
        self.table.sort_by(sort)
        self.draw()
        self.table.release()

    def _columns(self, width: int) -> Sequence[TableColumn]:
        """Return the columns chosen, or else those that fit; the first ones chosen are left out last."""
        if not self.choice.columns:
            return self.columns_for(width)
        known = {each.key: each for each in self.all_columns}
        return [replace(known[key], rank=-place) for place, key in enumerate(self.choice.columns)]

    def _remember(self, choice: TableChoice) -> None:
        """Use a choice now and after a restart."""
        self.use_choice(choice)
        self.state.options.preferences.choose(self.SCREEN_ID, self.choice)
        self.console.run_worker(self._write_preferences())

    async def _write_preferences(self) -> None:
        try:
            await asyncio.to_thread(self.state.options.preferences.write, self.SCREEN_ID)
        except OSError as error:
            self.state.note(EntryKind.ERROR, f"The columns cannot be remembered: {error.strerror}", is_bad=True)

    def on_keyed_table_sorted(self, event: KeyedTable.Sorted) -> None:
        """Remember the order chosen with the mouse."""
        if event.table is self.table:
            self._remember(replace(self.choice, sort=event.table.sort))

    def action_order(self) -> None:
        """Sort by the next column; after the last one by none."""
        keys = list(self.table.widths)
        place = -1 if self.choice.sort is None else keys.index(self.choice.sort.column) + 1
        following = keys[max(0, place) : max(0, place) + 1]
        self._remember(replace(self.choice, sort=self.table.first_sort(following[0]) if following else None))

    def action_reverse_order(self) -> None:
        """Reverse the order of the column that the list is sorted by."""
        if (sort := self.choice.sort) is None:
            self.notify("Sort by a column first")
        else:
            self._remember(replace(self.choice, sort=sort.reversed))

    @work
    async def action_columns(self) -> None:
        shown = [each.key for each in self._columns(self.size.width)]
        dialog = ChooseColumns(self.all_columns, shown, self.choice.sort, self.SORT_NOTE)
        if (chosen := await self.app.push_screen_wait(dialog)) is not None:
            is_same = chosen.columns == tuple(shown)  # then more of them still show in a wider terminal
            self._remember(replace(chosen, columns=self.choice.columns) if is_same else chosen)

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def table(self) -> KeyedTable:
        return self.query_one(f"#{self.TABLE}", KeyedTable)

    @property
    def selected(self) -> T | None:
        """What the row under the cursor describes, as last seen; None without a row, and for one that is gone."""
        return cast("T | None", self.table.selected)

    def draw(self) -> None:
        """Draw the rows and the status line."""
        if not self.stands:
            return
        if (known := self.known) is None:
            self.table.say_when_empty(UNKNOWN if self.failure else LOADING)
        elif (rows := self.rows(known)) is not None:
            self.table.say_when_empty(self.emptiness(known))
            self.table.apply(rows)
            self._move_to_named()
        self.draw_status()
        self.draw_preview()

    def draw_preview(self) -> None:
        if self.PREVIEW and self.stands and (panel := self.query_one(f"#{self.PREVIEW}", TextPanel)).display:
            content = self.preview()
            panel.visible = bool(content)
            panel.show(content)

    def on_keyed_table_highlighted(self) -> None:
        """Show everything about the row under the cursor."""
        super().on_keyed_table_highlighted()
        self.draw_preview()

    def draw_status(self) -> None:
        """Draw the status: the failure, with its remedy on more lines if it is long, or else one line."""
        sort = self.table.sort
        status = (LOADING.lower(),) if (known := self.known) is None else self.status(known)
        words = self.failure or " · ".join([*status, *([] if sort is None else [self.sort_words(sort)])])
        style = "$warning" if self.has_warning else "$quiet"
        line = self.query_one("#status", Static)
        line.set_class(self.has_warning, "-whole")
        line.update(Content.styled(words, style), layout=self.has_warning)

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        """Draw what depends on workers and locks."""
        self.draw()

    def show_answer(self, query: Query, answer: object) -> None:
        """Show an answer, unless something else is asked in the meantime."""
        if query == self.current_query():
            self.answer, self.failure = cast("A", answer), ""
            self.draw()

    def show_time(self) -> None:
        self.draw()

    def show_failure(self, failure: FailureKind, reason: str) -> None:
        self.failure = sanitize.line(f"{failure}: {reason}", 300)
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.table.set_columns(self._columns(event.size.width))

    # -- commands --------------------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        if (key := self.table.highlighted) is not None:
            self.console.copy(key)


def facts(pairs: Iterable[tuple[str, str]], text: str = "") -> Content:
    """Return named facts below each other, and a text of several lines."""
    lines = [f"{name:<8} {sanitize.line(value, 200)}" for name, value in pairs if value]
    return Content("\n".join([*lines, "", sanitize.block(text)]))
