"""Write only what differs from what the terminal shows: Textual writes every line of a changed region whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from rich.control import Control
from textual._compositor import ChopsUpdate
from textual.strip import Strip

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment
    from textual.screen import Screen


class ShownCells:
    """What the terminal shows, as far as it is known: by line, pieces of it by their first column."""

    def __init__(self) -> None:
        self._lines: dict[int, dict[int, tuple[int, Strip]]] = {}
        self._screen: Screen[object] | None = None

    def reduced(self, screen: Screen[object], update: RenderableType | None) -> RenderableType | None:
        """Return an update that leaves out what is shown already; anything else than a partial update is forgotten."""
        if not isinstance(update, ChopsUpdate) or screen is not self._screen:
            self._lines.clear()
            self._screen = screen
        return ReducedUpdate(update, self) if isinstance(update, ChopsUpdate) else update

    def change(self, y: int, x: int, end: int, strip: Strip) -> tuple[int, Sequence[Segment]]:
        """Take over a piece of a line; return from which column to write, and what."""
        line = self._lines.setdefault(y, {})
        before = line.get(x)
        for other, (other_end, _) in list(line.items()):
            if other < end and x < other_end:  # it is overwritten
                del line[other]
        line[x] = end, strip
        if before is None or before[0] != end or before[1].cell_length != strip.cell_length:
            return x, list(strip)
        return _difference(x, list(before[1]), list(strip))


def _difference(x: int, old: Sequence[Segment], new: Sequence[Segment]) -> tuple[int, Sequence[Segment]]:
    """Return the segments between the first and the last that differ; what both begin and end with is left out."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    rest_of_old, rest = old[same:], new[same:]
    pairs = zip(reversed(rest_of_old), reversed(rest), strict=False)
    same_at_end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return x + sum(each.cell_length for each in new[:same]), rest[: len(rest) - same_at_end]


class ReducedUpdate(ChopsUpdate):
    """A partial update without what the terminal shows already."""

    def __init__(self, update: ChopsUpdate, shown: ShownCells) -> None:
        super().__init__(update.chops, update.spans, update.chop_ends)
        self._shown = shown

    def render_segments(self, console: Console) -> str:
        """Return what is to be written."""
        return "".join(self._texts(console))

    def _texts(self, console: Console) -> Iterator[str]:
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= last or end <= first:
                    continue
                place, segments = self._shown.change(y, x, end, strip)
                if segments:
                    yield Control.move_to(place, y).segment.text
                    yield Strip(segments).render(console)
