"""The documentation uses the field's words and short sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "bench/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
MAX_WORDS = 25
NOT_PROSE = re.compile(r"^```.*?^```|<!-- generated.*?<!-- end -->", re.MULTILINE | re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")
# What to write instead is in the glossary.
PRIVATE_WORDS = re.compile(
    r"\b(?:mend\w*|wish\w*|hears?|heard|hearing|deaf|echo(?:es)?|hearts?|beats?|sign of life|went silent|was silent"
    r"|taken for dead|orderly|ancestors?|Rust port|patience|upkeep|tending|moments?|spans?|made? up for|strands?"
    r"|give[sn]? back|gave back|look-ahead|glances?|narrowing|manners|litter|lenders?|surroundings|overstep\w*|deeds?"
    r"|worry|worries|made-up|written down|in vain|by hand|by itself|at once|anew|once more|at hand|ours"
    r"|somebody|nobody|everybody|whoever)\b",
    re.IGNORECASE,
)


def prose(page: Path) -> list[str]:
    """Return the lines of a page that an author wrote, with code and links shortened."""
    lines = NOT_PROSE.sub("", page.read_text("utf-8")).splitlines()
    return [re.sub(r"\]\([^)]*\)", "]", re.sub(r"``? .*? ``?|`[^`]*`", "CODE", line)) for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    assert [(found[0], line) for line in prose(page) for found in PRIVATE_WORDS.finditer(line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_sentence_has_at_most_25_words(page: Path) -> None:
    sentences = [each for line in prose(page) if not line.startswith(("|", "#")) for each in SENTENCE_END.split(line)]

    assert [each for each in sentences if len(re.findall(r"[\w'-]+", each)) > MAX_WORDS] == []
