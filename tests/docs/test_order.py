"""The site has an order: five sections, each page in one of them, and each section in the side bar of its pages."""

from __future__ import annotations

import re
from pathlib import Path

import make_diagrams
import pytest
from pages import DOCS
from support.project_files import project_files

from gw_core import JobState

SECTIONS = {"start", "guide", "reference", "operations", "explanation"}
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALL = project_files(DOCS, "*.md")


def entries(page: Path) -> list[Path]:
    """Return the pages that a page lists in its toctrees."""
    listed = [line.strip() for tree in TOCTREE.findall(page.read_text("utf-8")) for line in tree.splitlines()]
    names = [re.sub(r".*<(.*)>", r"\1", line) for line in listed if line and not line.startswith(":")]
    return [each for name in names for each in _pages(page, name)]


def _pages(page: Path, name: str) -> list[Path]:
    base = DOCS / name.lstrip("/") if name.startswith("/") else page.parent / name
    return sorted(each for each in base.parent.glob(f"{base.name}.md") if each != page)


def test_the_header_has_five_entries() -> None:
    assert [page.parent.name for page in entries(DOCS / "index.md")] == [
        "start",
        "guide",
        "reference",
        "operations",
        "explanation",
    ]


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_is_in_one_place_of_the_order(page: Path) -> None:
    parents = [each for each in ALL if page in entries(each)]

    assert len(parents) == (0 if page == DOCS / "index.md" else 1)


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_the_pages_of_a_section_are_grouped(section: str) -> None:
    text = (DOCS / section / "index.md").read_text("utf-8")

    assert TOCTREE.search(text)
    assert [tree for tree in TOCTREE.findall(text) if ":caption:" not in tree] == []


def test_the_concepts_name_every_state_of_a_job() -> None:
    text = (DOCS / "start" / "concepts.md").read_text("utf-8")
    drawn = {box.text for box in make_diagrams.STATES.boxes}

    assert {state for state in JobState if f"| `{state}` |" not in text} == set()
    assert drawn == {*JobState, "completed"}


def test_a_guarantee_names_tests_that_exist() -> None:
    text = (DOCS / "explanation" / "guarantees.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    promises = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| Promise")]

    assert len(promises) >= 19
    assert [line for line in promises if "`tests/" not in line] == []
    assert [each for each in named if not _defines(*each)] == []


def _defines(file: str, test: str) -> bool:
    path = DOCS.parent / file
    return path.exists() and f"def {test}" in path.read_text("utf-8")
