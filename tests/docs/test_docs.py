"""Generated parts of the pages are current, links work, named modules exist, and Python examples compile."""

from __future__ import annotations

import re
from pathlib import Path

import generate
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md", *(ROOT / "docs").rglob("*.md")]
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


@pytest.mark.parametrize("page", sorted(generate.PAGES.glob("*.md")), ids=lambda page: page.name)
def test_the_generated_parts_of_a_page_are_current(page: Path) -> None:
    text = page.read_text("utf-8")

    assert generate.generated(text) == text, "run: python docs/generate.py"


def test_every_generated_part_is_on_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in generate.PAGES.glob("*.md"))

    assert {part for part in generate.PARTS if f"<!-- generated: {part} -->" in text} == set(generate.PARTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    missing = [target for target in LINK.findall(page.read_text("utf-8")) if not (page.parent / target).exists()]

    assert missing == []


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_a_page_names_modules_that_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    folders = "gw_core|gw_cli|gw_tui|worker|tasks|execution|processes|postgres|maintenance|selection|domain|sql|docs"
    named = set(re.findall(rf"`((?:{folders})/[\w./-]+\.\w+)`", text))

    assert named
    assert [path for path in named if not any((folder / path).exists() for folder in (ROOT, ROOT / "gw_core"))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_that_is_shown_is_python(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        compile(block, str(page), "exec")
