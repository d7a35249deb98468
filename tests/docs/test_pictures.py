"""The pictures in the documentation show the console as it is, and each is used."""

from __future__ import annotations

import asyncio
import html
import re
from pathlib import Path

import pytest
from make_pictures import PICTURES, Picture, take

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {f"{picture.name}.svg" for picture in PICTURES}


def test_the_folder_holds_exactly_the_defined_pictures() -> None:
    assert {path.name for path in (DOCS / "pictures").iterdir()} == NAMES


def test_the_guide_shows_every_picture_with_a_description() -> None:
    page = (DOCS / "guide" / "console.md").read_text("utf-8")

    shown = dict(re.findall(r"!\[([^\]]+)\]\(\.\./pictures/([\w-]+\.svg)\)", page))

    assert set(shown.values()) == NAMES
    assert all(len(words) > 10 for words in shown)


@pytest.mark.once
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_has_the_text_of_the_current_console(picture: Picture) -> None:
    kept = (DOCS / "pictures" / f"{picture.name}.svg").read_text("utf-8")

    # When this fails, run docs/make_pictures.py and check the pictures.
    assert words(asyncio.run(take(picture))) == words(kept)


def words(svg: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]
