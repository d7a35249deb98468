"""The API reference has an example for each class; test_code_blocks.py runs them and compares their output."""

from __future__ import annotations

import pytest
from pages import DOCS, blocks


@pytest.mark.parametrize("name", ["index", "parts"])
def test_every_class_on_the_page_has_an_example(name: str) -> None:
    page = DOCS / "api" / f"{name}.md"
    text = page.read_text("utf-8").splitlines()
    shown = [block.line for block in blocks(page) if block.language == "python"]
    headings = [number for number, line in enumerate(text, 1) if line.startswith("## ")]
    sections = zip(headings, [*headings[1:], len(text)], strict=True)

    assert [
        text[first - 1]
        for first, last in sections
        if any("autoclass" in line for line in text[first:last]) and not any(first < line < last for line in shown)
    ] == []
