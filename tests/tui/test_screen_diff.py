"""Only what differs is written, and the terminal shows the same as if everything were."""

from __future__ import annotations

import random

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate
from textual.screen import Screen
from textual.strip import Strip

from gw_tui.widgets.screen_diff import ShownCells

WIDTH = 40
STYLES = (Style(), Style(bold=True), Style(color="red"))
Cells = list[tuple[str, Style | None]]


def cells_of(segments: list[Segment]) -> Cells:
    return [(character, each.style) for each in segments for character in each.text]


def random_strip(chance: random.Random, width: int) -> Strip:
    segments, left = [], width
    while left:
        size = chance.randint(1, min(left, 12))
        segments.append(Segment(chance.choice("ab ") * size, chance.choice(STYLES)))
        left -= size
    return Strip(segments)


def test_the_terminal_shows_what_was_drawn_last_however_the_line_is_divided() -> None:
    chance, shown = random.Random(3), ShownCells()
    terminal: Cells = [(" ", None)] * WIDTH
    wanted, written, drawn = list(terminal), 0, 0
    previous: Strip | None = None
    for _ in range(2_000):
        begin, end = chance.choice([(0, WIDTH), (0, 20), (20, WIDTH), (10, 30)])
        is_same = previous is not None and previous.cell_length == end - begin and chance.random() < 0.5
        strip = previous if is_same and previous is not None else random_strip(chance, end - begin)
        previous = strip
        wanted[begin:end] = cells_of(list(strip))

        place, segments = shown.change(7, begin, end, strip)

        cells = cells_of(list(segments))
        terminal[place : place + len(cells)] = cells
        written, drawn = written + len(cells), drawn + end - begin
        assert terminal == wanted
    assert written < 0.9 * drawn


def test_a_changed_number_is_all_that_is_written() -> None:
    shown = ShownCells()
    line = [Segment("task "), Segment("12s", STYLES[1]), Segment(" worker")]
    shown.change(0, 3, 18, Strip(line))

    assert shown.change(0, 3, 18, Strip(line)) == (3 + 15, [])
    line[1] = Segment("13s", STYLES[1])
    assert shown.change(0, 3, 18, Strip(line)) == (8, [line[1]])


def test_what_begins_where_an_update_ends_is_left_alone() -> None:
    """Beside the updated regions, Textual draws what is below the widgets there."""
    pieces = {0: Strip([Segment("left")]), 4: Strip([Segment("....")])}
    update = ChopsUpdate([pieces], [(0, 0, 4)], [[4, 8]])

    reduced = ShownCells().reduced(Screen(), update)

    assert isinstance(reduced, ChopsUpdate)
    assert "left" in reduced.render_segments(Console())
    assert "." not in reduced.render_segments(Console())
    assert "." not in update.render_segments(Console())
