"""Type checkers accept the right lines of programs as users write them, and reject each wrong one.

`# wrong` ends a line that mypy and pyright reject. The programs of the manual and of examples/ have no wrong line;
their functions need no annotations.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.npm import npm_package

sys.path.append(str(Path(__file__).parents[1] / "docs"))
from test_code_blocks import PROGRAMS as MANUAL

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".mypy_cache" / "programs"

CONFIGURATION = """
[mypy]
strict = True
warn_unused_ignores = False

[mypy-django.*,asyncpg.*,flask_sqlalchemy.*]
ignore_missing_imports = True

[mypy-{unannotated}]
disallow_untyped_defs = False
disallow_incomplete_defs = False
disallow_untyped_calls = False
disallow_untyped_decorators = False
disallow_any_generics = False
disallow_subclassing_any = False
warn_return_any = False
disable_error_code = {not_here}
"""
NOT_HERE = {"mypy": ["name-defined", "no-redef"], "pyright": ["reportUndefinedVariable", "reportRedeclaration"]}
"""What is wrong with a program of the manual only because it is divided into blocks."""

Line = tuple[str, int]


def wrong_lines() -> Iterator[Line]:
    """Yield the lines that a checker has to reject."""
    for path in sorted(PROGRAMS.glob("*.py")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if "# wrong" in line:
                yield path.name, number


def programs(checker: str) -> list[Path]:
    """Write the programs of the manual to files, and return all programs."""
    folder = CACHE / checker  # the same at each run, because mypy remembers paths
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, program, _ in MANUAL:
        path = folder / f"manual_{re.sub('[^a-z0-9]+', '_', name)}.py"
        path.write_text(program, "utf-8")
        written.append(path)
    assert len(written) > 20
    return [*sorted(PROGRAMS.glob("*.py")), *written]


def check(rejected: dict[Line, str]) -> None:
    """Compare what a checker rejects with the lines that it has to reject."""
    wrong = set(wrong_lines())
    assert {line: message for line, message in rejected.items() if line not in wrong} == {}
    assert wrong - set(rejected) == set()


def test_mypy_rejects_exactly_the_wrong_lines(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    files = programs("mypy")
    configuration = tmp_path / "mypy.ini"
    unannotated = ",".join(path.stem for path in files if path.parent != PROGRAMS)
    configuration.write_text(CONFIGURATION.format(unannotated=unannotated, not_here=",".join(NOT_HERE["mypy"])))
    options = [f"--config-file={configuration}", f"--cache-dir={CACHE / 'cache'}"]

    done = run([sys.executable, "-m", "mypy", *options, *map(str, files)])

    found = re.findall(r"^(.+?):(\d+): error: (.*)", done.stdout, re.MULTILINE)
    assert found, done.stderr
    check({(Path(file).name, int(number)): message for file, number, message in found})


def test_pyright_rejects_exactly_the_wrong_lines() -> None:
    program = npm_package("pyright", "1.1.414") / "index.js"

    done = run(["node", str(program), "--outputjson", f"--pythonpath={sys.executable}", *map(str, programs("pyright"))])

    errors = [each for each in json.loads(done.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    errors = [each for each in errors if each["rule"] not in NOT_HERE["pyright"]]
    check({(Path(each["file"]).name, each["range"]["start"]["line"] + 1): each["message"] for each in errors})


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
