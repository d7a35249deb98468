"""The documentation has short sentences; test_vocabulary.py checks the words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.project_files import project_files

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "bench/README.md")),
    *project_files(ROOT / "docs", "*.md"),
]
MAX_WORDS = 25
NOT_PROSE = re.compile(r"^```.*?^```|<!-- generated.*?<!-- end -->", re.MULTILINE | re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")


def prose(page: Path) -> list[str]:
    """Return the lines of a page that an author wrote, with code and links shortened."""
    lines = NOT_PROSE.sub("", page.read_text("utf-8")).splitlines()
    return [re.sub(r"\]\([^)]*\)", "]", re.sub(r"``? .*? ``?|`[^`]*`", "CODE", line)) for line in lines]


NO_SUBJECT = re.compile(r"^(?:[-*] |\d+\. )?(?:What|Those|Such|Whatever|Whoever|Whichever) [a-z]")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_sentence_starts_with_its_subject(page: Path) -> None:
    sentences = [each for line in prose(page) if not line.startswith("#") for each in SENTENCE_END.split(line)]

    assert [each for each in sentences if NO_SUBJECT.match(each) and not each.endswith("?")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_sentence_has_at_most_25_words(page: Path) -> None:
    sentences = [each for line in prose(page) if not line.startswith(("|", "#")) for each in SENTENCE_END.split(line)]

    assert [each for each in sentences if len(re.findall(r"[\w'-]+", each)) > MAX_WORDS] == []
