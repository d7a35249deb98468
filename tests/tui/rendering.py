"""What a screen looks like, as text that can be kept and compared: its characters, and how each is painted.

A screen names its paints by the variables of the themes, so that one grid of letters covers all themes. A colour that
is not a variable, for example a dimmed one, is listed for each theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from string import ascii_letters, digits
from typing import Final

from rich.cells import cell_len
from rich.style import Style
from textual.app import App

LETTERS: Final = ascii_letters + digits + "".join(map(chr, range(0xC0, 0x180)))
PAINTED, MEANING = "== how it is painted", "== what the letters mean"
OWN: Final = "own"
"""The terminal's own colour, where we give none."""
NEAR: Final = 3
"""How far apart colours of other releases of the framework may lie, of 255."""

# The first name that fits is taken.
NAMES: Final = ("foreground", "background", "panel", "quiet", "line", "cursor", "cursor-text", "primary", "error")
MORE: Final = ("state-ready", "state-running", "state-scheduled", "state-backoff", "state-failed", "accent", "warning")

Cells = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RenderedScreen:
    """A screen: for each line its cells, each a character and the name of its paint."""

    lines: Sequence[Cells]

    @property
    def texts(self) -> list[str]:
        return ["".join(character for character, _ in line).rstrip() for line in self.lines]


# -- taking ----------------------------------------------------------------------------------------------------------


Paint = tuple[str, str, str]


def cells(app: App[None]) -> list[list[tuple[str, Paint]]]:
    """Return the cells in front, each with its colours and attributes."""
    found = []
    for strip in app.screen._compositor.render_strips():
        line: list[tuple[str, Paint]] = []
        for text, style, _ in strip:
            letters = _paint(style, is_blank=False)
            blanks = _paint(style, is_blank=True)
            for character in text:
                paint = blanks if character == " " else letters
                width = 1 if character.isascii() else cell_len(character)
                line += [(character, paint)] * (width > 0)
                line += [("", paint)] * (width - 1)
        found.append(line)
    return found


def painted(
    themes: Mapping[str, Mapping[str, str]], seen: Mapping[str, list[list[tuple[str, Paint]]]]
) -> RenderedScreen:
    """Return one screen for what was seen in each theme; the variables of the themes name the paints."""
    names = {tuple(each[name].upper() for each in themes.values()): name for name in reversed((*NAMES, *MORE))}
    known: dict[tuple[Paint, ...], str] = {}
    lines = []
    for many in zip(*seen.values(), strict=True):
        line = []
        for cell in zip(*many, strict=True):
            characters, paints = zip(*cell, strict=True)
            assert len(set(characters)) == 1, "themes write different texts"
            if paints not in known:
                known[paints] = _named(names, paints)
            line.append((characters[0], known[paints]))
        lines.append(line)
    return RenderedScreen(lines)


@lru_cache(4096)
def _paint(style: Style | None, *, is_blank: bool) -> Paint:
    style = style or Style.null()
    attributes = [name for name in ("bold", "dim", "italic", "underline", "reverse", "strike") if getattr(style, name)]
    if is_blank:  # of an empty cell only this is seen
        attributes = [name for name in attributes if name in ("underline", "reverse", "strike")]
    fore = _hex(style.color) if not is_blank or attributes else ""
    return fore, _hex(style.bgcolor), " ".join(attributes)


def _hex(colour: object) -> str:
    return OWN if colour is None or colour.is_default else colour.get_truecolor().hex.upper()  # type: ignore[attr-defined]


def _named(names: Mapping[tuple[str, ...], str], paints: Sequence[Paint]) -> str:
    def name(values: tuple[str, ...]) -> str:
        return names.get(values) or (values[0] if len(set(values)) == 1 else "|".join(values))

    fore, back, attributes = (name(each) for each in zip(*paints, strict=True))
    return " ".join(each for each in (fore, "on", back, attributes) if each).removeprefix("on ")


# -- keeping ---------------------------------------------------------------------------------------------------------


def written(screen: RenderedScreen, *, with_paint: bool = True) -> str:
    """Return a screen as the text of a file: the screen, a grid of letters, and what they mean."""
    if not with_paint:
        return "\n".join(screen.texts) + "\n"
    letters: dict[str, str] = {}
    grid = []
    for line in screen.lines:
        row = "".join(letters.setdefault(paint, LETTERS[len(letters)]) for _, paint in line)
        grid.append(row.rstrip(row[-1]) + row[-1])
    meanings = [f"{letter} {paint}" for paint, letter in letters.items()]
    return "\n".join([*screen.texts, PAINTED, *grid, MEANING, *meanings]) + "\n"


def read(text: str, width: int) -> RenderedScreen:
    """Return the screen that was written; the last letter of a line goes on to its end."""
    shown, _, rest = text.partition(f"{PAINTED}\n")
    grid, _, meanings = rest.partition(f"{MEANING}\n")
    paints = {line[0]: line[2:] for line in meanings.splitlines()}
    rows = grid.splitlines() or [""] * len(shown.splitlines())
    return RenderedScreen([_read_line(*each, paints, width) for each in zip(shown.splitlines(), rows, strict=True)])


def _read_line(text: str, row: str, paints: Mapping[str, str], width: int) -> Cells:
    characters = [part for each in text for part in (each, *[""] * (cell_len(each) - 1))]
    characters += [" "] * (width - len(characters))
    letters = row + row[-1:] * (width - len(row))
    return (
        [(each, paints[letter]) for each, letter in zip(characters, letters or " " * width, strict=True)]
        if row
        else [(each, "") for each in characters]
    )


def in_first_theme(screen: RenderedScreen, variables: Mapping[str, str]) -> RenderedScreen:
    """Return a screen painted with the colours of the first theme in place of the names of its variables."""

    @cache
    def coloured(paint: str) -> str:
        return " ".join(variables.get(each, each).split("|")[0].upper() for each in paint.split())

    return RenderedScreen([[(character, coloured(paint)) for character, paint in line] for line in screen.lines])


# -- comparing -------------------------------------------------------------------------------------------------------


def first_difference(was: RenderedScreen, now: RenderedScreen) -> str | None:
    """Describe where two screens begin to differ, or return None; a screen without paint matches any paint."""
    if len(was.lines) != len(now.lines):
        return f"it had {len(was.lines)} lines and has {len(now.lines)}"
    for number, column, before, after in _pairs(was, now):
        if before != after and (before[0] != after[0] or not _is_alike(before[1], after[1])):
            return (
                f"line {number}, column {column}: "
                f"it was {before[0]!r} in {before[1]}, and is {after[0]!r} in {after[1]}\n"
                f"was: {was.texts[number - 1]}\nis:  {now.texts[number - 1]}"
            )
    return None


def _pairs(was: RenderedScreen, now: RenderedScreen) -> Iterator[tuple[int, int, tuple[str, str], tuple[str, str]]]:
    for number, (one, other) in enumerate(zip(was.lines, now.lines, strict=True), 1):
        for column, (before, after) in enumerate(zip(one, other, strict=True), 1):
            yield number, column, before, after


def _is_alike(one: str, other: str) -> bool:
    """Return whether two paints look the same: releases of the framework may mix colours a little differently."""
    if not one or not other or one == other:
        return True
    pattern = re.compile(r"#([0-9A-F]{2})([0-9A-F]{2})([0-9A-F]{2})")
    if pattern.sub("", one) != pattern.sub("", other):
        return False
    parts = [[int(part, 16) for found in pattern.findall(each) for part in found] for each in (one, other)]
    return all(abs(a - b) <= NEAR for a, b in zip(*parts, strict=True))
