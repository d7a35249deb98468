"""A chart of rates as a line of dots: one column is one step of time, with its scale beside and its times below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import ClassVar, Final

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from gw_tui.text import formatting

DOTS: Final = 4
"""Dots above each other in a cell."""
LEFT: Final = (0x40, 0x04, 0x02, 0x01)
RIGHT: Final = (0x80, 0x20, 0x10, 0x08)
"""The dots of the two columns of a cell in Unicode's braille patterns, from the lowest up."""
BRAILLE: Final = 0x2800
GAP: Final = "·"
LONG_STEP: Final = 60
"""From this many seconds on, several steps share a column where there is no room for all: they change seldom."""
TALL: Final = 5
"""From this height on, the times stand below the line, and the largest value and zero beside it."""
WIDE: Final = 24
"""A narrower chart has no numbers beside it."""


class Bars(Widget):
    """Draws values, newest at the right edge; `·` is a gap, where nothing was measured."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"bars--bar", "bars--title", "bars--scale"}
    DEFAULT_CSS = """
    Bars { height: 1fr; width: 1fr; }
    """

    def __init__(
        self,
        title: str,
        write: Callable[[float], str],
        *,
        short: str = "",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._title = title
        self._short = short or title
        self._write = write
        self._values: Sequence[float | None] = ()
        self._range = ""
        self._step = 1
        self._is_drawn = False

    def draw(self, values: Sequence[float | None] | None, reach: str, step: int) -> None:
        """Show these values, of this many seconds each; without any the chart is unknown, and None is loading."""
        self._step, self._is_drawn = step, values is not None
        values = values or ()
        if (values, reach) != (self._values, self._range) or not values:
            self._values, self._range = values, reach
            self.refresh()

    @property
    def _ground(self) -> int:
        """The line that the bars stand on; the times are below it where there is room."""
        height = self.size.height
        return height - 2 if height >= TALL else height - 1

    def _slice(self, values: Sequence[float | None], top: float, y: int) -> str:
        """Return what the line shows at one height."""
        most = self._ground * DOTS - 1
        dots = [None if value is None else round(value / top * most) if top > 0 else 0 for value in values]
        pairs = zip([None, *dots], dots, strict=False)
        return "".join(_cell(before, here, self._ground - y) for before, here in pairs).rjust(self._plot)

    @property
    def _axis(self) -> tuple[str, str]:
        """The largest value and zero, as they stand beside the line; empty where there is no room."""
        top = max((value for value in self._values if value is not None), default=0.0)
        if self.size.height < TALL or self.size.width < WIDE or not top:
            return "", ""
        high, low = self._write(top), "0"
        return f"{high} ", low.rjust(len(high)) + " "

    @property
    def _plot(self) -> int:
        """The width of the line."""
        return max(0, self.size.width - len(self._axis[0]))

    def _times(self, width: int) -> str:
        """Return the times below the bars: how long ago the left edge and the middle were."""
        values, step = self._columns(width)
        if not values:
            return ""
        wide = max(1, width // len(values))
        left = width - wide * len(values)
        labels = [(left, len(values)), (left + wide * len(values) // 2, len(values) // 2)]
        line = "".ljust(width)
        for place, steps in labels:
            text = f"-{_ago(timedelta(seconds=steps * step))}"
            line = line[:place] + text + line[place + len(text) :]
        return f"{line[: width - 4].ljust(width - 4)} now"

    @property
    def newest(self) -> float | None:
        """The last value known."""
        return next((value for value in reversed(self._values) if value is not None), None)

    def render_line(self, y: int) -> Strip:
        """Draw one line: the title with its numbers, or a slice of the bars."""
        width, style = self.size.width, self.rich_style
        if y == 0:
            return self._head(width)
        quiet = style + self.get_component_rich_style("bars--scale", partial=True)
        high, low = self._axis
        margin = high if y == 1 else low if y == self._ground else " " * len(high)
        if y > self._ground:
            return Strip([Segment(" " * len(high) + self._times(self._plot), quiet)]).adjust_cell_length(width, style)
        values = self._fitted(self._plot)
        top = max((value for value in values if value is not None), default=0.0)
        line = style + self.get_component_rich_style("bars--bar", partial=True)
        return Strip([Segment(margin, quiet), Segment(self._slice(values, top, y), line)]).adjust_cell_length(
            width, style
        )

    def _head(self, width: int) -> Strip:
        style = self.rich_style
        quiet = style + self.get_component_rich_style("bars--scale", partial=True)
        strong = style + self.get_component_rich_style("bars--title", partial=True)
        title, newest, about = self._titles(width)
        segments = [Segment(f"{title} ", quiet), Segment(newest, strong), Segment(about, quiet)]
        return Strip(segments).adjust_cell_length(width, style)

    def _titles(self, width: int) -> tuple[str, str, str]:
        """Return the title, the newest value and the period: charts of other periods may stand beside this one."""
        newest = self._write(self.newest) if self.newest is not None else self._missing
        known = [value for value in self._values if value is not None]
        most = "" if self._axis[0] or not known else f" max {self._write(max(known))}"
        shown, step = self._columns(self._plot)
        period = _ago(timedelta(seconds=len(shown) * step)) if shown else self._range
        shown_period = f" ({period})" if period else ""
        choices = (
            (self._title, newest, most + shown_period),
            (self._title, newest, shown_period),
            (self._short, newest, shown_period),
            (self._short, newest, f" {period}"),
            (self._short, "…", shown_period),
        )
        fitting = (each for each in choices if len(" ".join(each[:2]) + each[2]) <= width)
        return next(fitting, choices[-1] if self.newest is None else choices[-2])

    @property
    def _missing(self) -> str:
        """Why there is no newest value."""
        return "no data yet" if self._values else "unknown" if self._is_drawn else "loading…"

    def _fitted(self, width: int) -> Sequence[float | None]:
        """Return one value a column: each several columns wide where there is room."""
        values, _ = self._columns(width)
        if not values:
            return ()
        times = max(1, width // len(values))
        return [value for value in values for _ in range(times)]

    def _columns(self, width: int) -> tuple[Sequence[float | None], int]:
        """Return the values that fit and the seconds of each: of minutes the means of several, else the newest."""
        values = self._values
        if not width or len(values) <= width:
            return (values if width else ()), self._step
        if self._step < LONG_STEP:
            return values[-width:], self._step
        many = max(2, len(values) // width)
        first = len(values) - many * min(width, len(values) // many)
        groups = [values[place : place + many] for place in range(first, len(values), many)]
        return [_mean(group) for group in groups], self._step * many


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _ago(away: timedelta) -> str:
    """Return how long ago a column was: `40s`, `30m`, `12h`."""
    seconds = round(away.total_seconds())
    for unit, size in (("h", 3_600), ("m", 60)):
        if seconds >= size and not seconds % size:
            return f"{seconds // size}{unit}"
    return formatting.duration(away)


def _cell(before: int | None, here: int | None, level: int) -> str:
    """Return one cell of the line at one level, the lowest being 0: its dots, joined to those of the cell before."""
    if here is None:
        return " " if level else GAP
    first, last = sorted((here if before is None else before, here))
    bottom = level * DOTS
    bits = sum(LEFT[row] for row in range(DOTS) if first <= bottom + row <= last)
    if bottom <= here < bottom + DOTS:
        bits |= LEFT[here - bottom] | RIGHT[here - bottom]
    return chr(BRAILLE + bits) if bits else " "
