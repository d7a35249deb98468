"""Each public name has a docstring with an example, or with a link to a page that has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import surface
from public_names import EXAMPLE, names_of

ROOT = Path(__file__).resolve().parents[2]
NAMES = [(module, name) for module in surface.MODULES for name in names_of(module)]
CODE = re.compile(r"```python\n.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module}.{name}" for module, name in NAMES])
def test_a_public_name_has_an_example(module: str, name: str) -> None:
    found = EXAMPLE.search(surface.docstring(module, name))

    assert found, f"end the docstring of {name} with a line such as: Example: docs/api/gw_core.md"
    shown = " ".join(CODE.findall((ROOT / "docs" / f"{found[1]}.md").read_text("utf-8")))
    assert re.search(rf"\b{name}\b", shown), f"{found[0]} does not use {name}"


def test_each_page_with_an_example_has_a_program() -> None:
    pages = {found[1] for each in NAMES if (found := EXAMPLE.search(surface.docstring(*each)))}
    texts = {page: (ROOT / "docs" / f"{page}.md").read_text("utf-8") for page in pages}

    assert [page for page, text in texts.items() if page != "api/testing" and "```python" not in text] == []
