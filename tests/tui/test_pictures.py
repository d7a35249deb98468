"""The pictures of the manual are those the script makes, and each is shown."""

from __future__ import annotations

import asyncio
import html
import re
from pathlib import Path

import pytest

from gw_tui.pictures import PICTURES, Picture, taken

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {f"{picture.name}.svg" for picture in PICTURES}


def test_every_picture_is_there_and_no_other() -> None:
    assert {path.name for path in (DOCS / "pictures").iterdir()} == NAMES


def test_every_picture_is_shown_with_words_for_those_who_cannot_see_it() -> None:
    page = (DOCS / "guide" / "console.md").read_text("utf-8")

    shown = dict(re.findall(r"!\[([^\]]+)\]\(\.\./pictures/([\w-]+\.svg)\)", page))

    assert set(shown.values()) == NAMES
    assert all(len(words) > 10 for words in shown)


@pytest.mark.once
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_says_what_the_console_says_today(picture: Picture) -> None:
    kept = (DOCS / "pictures" / f"{picture.name}.svg").read_text("utf-8")

    # When this fails, make them anew and look at them: python -m gw_tui.pictures docs/pictures
    assert words(asyncio.run(taken(picture))) == words(kept)


def words(svg: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]
