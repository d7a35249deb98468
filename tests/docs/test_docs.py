"""What is written is true: pages made from the program match it, links lead somewhere, SQL and commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import events_page
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


def test_the_page_of_events_is_what_the_program_says() -> None:
    assert events_page.PAGE.read_text("utf-8") == events_page.page()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    missing = [target for target in LINK.findall(page.read_text("utf-8")) if not (page.parent / target).exists()]

    assert missing == []


def test_the_architecture_page_names_modules_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(
        re.findall(
            r"`((?:gw_core|gw_tui|worker|tasks|execution|processes|postgres|maintenance|domain|sql)/[\w./]+\.\w+)`",
            text,
        )
    )

    assert named
    assert [path for path in named if not (ROOT / path).exists() and not (ROOT / "gw_core" / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_that_is_shown_is_python(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        compile(block, str(page), "exec")
