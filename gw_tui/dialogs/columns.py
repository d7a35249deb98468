"""Choose the columns of a list, their order, and the column that it is sorted by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from gw_tui.dialogs.framed import Choices, Framed
from gw_tui.rules.preferences import TableChoice, TableSort
from gw_tui.text.symbols import SHOWN
from gw_tui.widgets.table_rows import TableColumn

KEYS = "space shows or hides, J K move, s sorts, S reverses, d restores, enter applies"


class ChooseColumns(Framed[TableChoice]):
    """Asks for columns and an order; dismissed with the choice, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "show_or_hide", show=False),
        Binding("J,shift+down", "shift(1)", show=False),
        Binding("K,shift+up", "shift(-1)", show=False),
        Binding("s", "sort", show=False),
        Binding("S", "reverse", show=False),
        Binding("d", "restore", show=False),
    ]

    DEFAULT_CSS = """
    ChooseColumns .framed { max-height: 100%; }
    ChooseColumns OptionList { height: auto; max-height: 14; padding: 0; }
    ChooseColumns Static { height: auto; color: $quiet; }
    """

    def __init__(
        self, columns: Sequence[TableColumn], shown: Iterable[str], sort: TableSort | None, note: str = ""
    ) -> None:
        super().__init__()
        self._columns = {each.key: each for each in columns}
        self._shown = [each for each in shown if each in self._columns]
        self._order = [*self._shown, *(each for each in self._columns if each not in self._shown)]
        self._sort = sort
        self._note = note

    def compose(self) -> ComposeResult:
        with Vertical(classes="framed") as panel:
            panel.border_title = "Columns"
            yield Choices(*(Option(self._line(each), id=each) for each in self._order))
            yield Static(KEYS, markup=False)
            if self._note:
                yield Static(self._note, id="note", markup=False)

    def _line(self, key: str) -> Content:
        mark = SHOWN if key in self._shown else " "
        arrow = self._sort.arrow if self._sort is not None and self._sort.column == key else " "
        return Content.assemble(f"{mark} {arrow} ", (self._columns[key].title or key, "bold"))

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def _key(self) -> str:
        """The column under the cursor."""
        return self._order[self._list.highlighted or 0]

    def _draw(self, place: int) -> None:
        self._list.set_options(Option(self._line(each), id=each) for each in self._order)
        self._list.highlighted = place

    def action_show_or_hide(self) -> None:
        """Show or hide the column; the last one stays."""
        key = self._key
        if key not in self._shown:
            self._shown.append(key)
        elif len(self._shown) > 1:
            self._shown.remove(key)
        self._draw(self._order.index(key))

    def action_shift(self, by: int) -> None:
        key = self._key
        place = min(max(0, self._order.index(key) + by), len(self._order) - 1)
        self._order.remove(key)
        self._order.insert(place, key)
        self._draw(place)

    def action_sort(self) -> None:
        """Sort by the column, or stop sorting by it."""
        key = self._key
        is_sorted = self._sort is not None and self._sort.column == key
        self._sort = None if is_sorted else TableSort(key, self._columns[key].right)
        self._draw(self._order.index(key))

    def action_reverse(self) -> None:
        if self._sort is not None:
            self._sort = self._sort.reversed
            self._draw(self._list.highlighted or 0)

    def action_restore(self) -> None:
        """Choose the columns that fit, in the usual order."""
        self.dismiss(TableChoice())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(TableChoice(tuple(each for each in self._order if each in self._shown), self._sort))
