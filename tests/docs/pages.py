"""Take the code blocks from the pages of the manual."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support.project_files import project_files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>```+)(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=indent)(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"<!-- fragment: (.+) -->\n\Z")


class Block(NamedTuple):
    """A block of a page: its language, its code, and why it does not run as it stands; "": it runs."""

    page: str
    line: int
    language: str
    code: str
    fragment: str

    def has_output(self, following: Block) -> bool:
        """Return whether the block below shows what this one prints: there is no word between them."""
        below = self.line + self.code.count("\n") + 3
        return following.language == "text" and (following.page, following.line) == (self.page, below)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return the pages that show code."""
    return [ROOT / "README.md", *project_files(DOCS, "*.md")]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the code blocks of a page in their order."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        mark = MARK.search(text, 0, found.start())
        line = text.count("\n", 0, found.start()) + 1
        name = str(page.relative_to(ROOT))
        yield Block(name, line, found["language"].strip(), found["code"], mark[1] if mark else "")
