"""The pictures in the documentation show the console as it is, and each is used."""

from __future__ import annotations

import html
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import make_diagrams
import pytest
from make_pictures import PICTURES, Picture, drawn, messy_queue, shown
from support.databases import Databases
from support.waiting import wait_until

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {f"{picture.name}.svg" for picture in PICTURES}


def test_the_folder_holds_exactly_the_defined_pictures() -> None:
    assert {path.name for path in (DOCS / "pictures").iterdir()} == NAMES


def test_the_guide_shows_every_picture_with_a_description() -> None:
    page = (DOCS / "guide" / "console.md").read_text("utf-8")

    shown = dict(re.findall(r"!\[([^\]]+)\]\(\.\./pictures/([\w-]+\.svg)\)", page))

    assert set(shown.values()) == NAMES
    assert all(len(words) > 10 for words in shown)


def test_the_diagrams_are_as_drawn() -> None:
    written = {path.name: path.read_text("utf-8") for path in (DOCS / "diagrams").iterdir()}

    assert written == {f"{each.name}.svg": make_diagrams.drawn(each) for each in make_diagrams.DIAGRAMS}


@pytest.fixture(scope="module")
def queue(databases: Databases) -> Iterator[str]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with messy_queue(databases.conninfo, database=f"gw_pictures_{uuid.uuid4().hex[:12]}") as url:
        yield url


@pytest.mark.acceptance
@pytest.mark.once
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_has_the_frame_of_the_current_console(picture: Picture, queue: str) -> None:
    kept = (DOCS / "pictures" / f"{picture.name}.svg").read_text("utf-8")

    with shown(replace(picture, rests=0.0), queue) as terminal:
        with suppress(AssertionError):
            wait_until(lambda: frame(drawn(picture, terminal.text)) == frame(kept), every=0.2)
        # When this fails, run docs/make_pictures.py and check the pictures.
        assert frame(drawn(picture, terminal.text)) == frame(kept)


def frame(svg: str) -> list[str]:
    """Return what does not depend on the time: the screens, the titles of columns and panels, and the keys."""
    lines: dict[int, str] = {}
    for number, text in re.findall(r"<text[^>]*-line-(\d+)\)[^>]*>([^<]*)</text>", svg):
        lines[int(number)] = lines.get(int(number), "") + html.unescape(text).replace("\xa0", " ")
    shown = [" ".join(lines[number].split()) for number in sorted(lines)]
    titles = [
        line for line in shown if re.search(r"[─━] |\b(state|status|what|prio)\b", line) and not re.search(r"\d", line)
    ]
    return [shown[0], *titles, shown[-1]]
