"""The pictures of the manual are those the script makes, and each is shown."""

from __future__ import annotations

import re
from pathlib import Path

from gw_tui.pictures import PICTURES

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {f"{picture.name}.svg" for picture in PICTURES}


def test_every_picture_is_there_and_no_other() -> None:
    assert {path.name for path in (DOCS / "pictures").iterdir()} == NAMES


def test_every_picture_is_shown_with_words_for_those_who_cannot_see_it() -> None:
    page = (DOCS / "guide" / "console.md").read_text("utf-8")

    shown = dict(re.findall(r"!\[([^\]]+)\]\(\.\./pictures/([\w-]+\.svg)\)", page))

    assert set(shown.values()) == NAMES
    assert all(len(words) > 10 for words in shown)
