"""Every output of a command that a page shows is compared with the program's own, by the test that is named here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from pages import ROOT, Block, blocks, pages

CHECKED = {
    "docs/start/tutorial.md": "tests/docs/test_tutorial.py",
    "docs/guide/running-workers.md": "tests/actions/test_acting_on_shards.py",
    "docs/guide/console.md": "tests/tui/test_serve.py",
    "docs/operations/metrics.md": "tests/core/test_probe.py",
}
"""The pages that show an output, and the test that reads the page."""


def outputs() -> Iterator[Block]:
    """Yield the blocks that show what a command prints: below it, or in a session of a terminal."""
    for page in pages():
        for block, below in pairwise([*blocks(page), Block("", 0, "", "", "")]):
            if block.language == "console" and "$ " in block.code and shown(block):
                yield block
            if block.language == "sh" and block.has_output(below):
                yield below


def shown(block: Block) -> list[str]:
    return [line for line in block.code.splitlines() if not line.startswith("$ ")]


def test_every_page_with_an_output_has_a_test_that_reads_it() -> None:
    assert {block.page for block in outputs()} == set(CHECKED)


@pytest.mark.parametrize(("page", "test"), CHECKED.items())
def test_the_test_reads_the_page(page: str, test: str) -> None:
    assert page.rpartition("/")[2] in (ROOT / test).read_text("utf-8")
