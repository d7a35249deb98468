"""The examples of the API reference print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api" / "index.md"
EXAMPLE = re.compile(r"^## ([\w.]+)\n.*?^```python\n(.*?)^```$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = EXAMPLE.findall(PAGE.read_text("utf-8"))


def test_every_class_on_the_page_has_an_example() -> None:
    assert [name for name, _, _ in EXAMPLES] == re.findall(r"^## ([\w.]+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize(("code", "output"), [pytest.param(*each[1:], id=each[0]) for each in EXAMPLES])
def test_an_example_prints_what_the_page_shows(code: str, output: str, database_url: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "DATABASE_URL": database_url},
        text=True,
        capture_output=True,
        timeout=60,
    )

    assert (done.returncode, done.stdout) == (0, output), done.stderr
