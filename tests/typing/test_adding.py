"""Type checkers accept the right calls of `add` and reject the wrong ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.npm import npm_package

PROGRAM = Path(__file__).parent / "adding.py"
ROOT = Path(__file__).parents[2]


def wrong_lines() -> set[int]:
    lines = PROGRAM.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if "# wrong" in line}


def test_mypy_rejects_exactly_the_wrong_lines(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", str(PROGRAM)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    found = {int(number) for number in re.findall(r"adding\.py:(\d+): error", done.stdout)}
    assert found == wrong_lines(), done.stdout


def test_pyright_rejects_exactly_the_wrong_lines() -> None:
    program = npm_package("pyright", "1.1.414") / "index.js"
    command = ["node", str(program), "--outputjson", f"--pythonpath={sys.executable}", str(PROGRAM)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    report = json.loads(done.stdout)["generalDiagnostics"]
    found = {each["range"]["start"]["line"] + 1 for each in report if each["severity"] == "error"}
    assert found == wrong_lines(), done.stdout
