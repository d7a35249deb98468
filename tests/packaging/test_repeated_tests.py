"""`.ci/tests` repeats a test that failed, and accepts it only if it passes each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "tests"
MAKEFILE = f"test:\n\t{sys.executable} -m pytest -c pytest.ini $(subst -n0,,$(PYTEST_ARGS))\n"
PASSES = "def test_passes():\n    pass\n"
FAILS_ONCE = """
from pathlib import Path
def test_fails_once():
    with Path("runs").open("a+") as runs:
        runs.write("run;")
    assert Path("runs").read_text() != "run;"
"""
FAILS_TWICE = FAILS_ONCE.replace('!= "run;"', 'not in ("run;", "run;run;run;")')
FAILS = "def test_fails():\n    assert False\n"


def run(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for number, text in enumerate(tests):
        (folder / f"test_{number}.py").write_text(text)
    # These tests need none of the plugins, whose imports would take most of the time.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run([SCRIPT, "make", "test"], cwd=folder, env=environment, capture_output=True, text=True)


def test_tests_that_pass_run_once(tmp_path: Path) -> None:
    done = run(tmp_path, PASSES)

    assert done.returncode == 0, done.stdout
    assert "repeating" not in done.stdout


def test_a_test_that_failed_once_is_repeated_alone_and_named(tmp_path: Path) -> None:
    done = run(tmp_path, PASSES, FAILS_ONCE)

    assert done.returncode == 0, done.stdout
    assert (tmp_path / "runs").read_text() == "run;" * 6
    assert "test_fails_once" in (tmp_path / "build" / "unreliable").read_text()


@pytest.mark.parametrize(
    "tests", [(PASSES, FAILS), (PASSES, FAILS_TWICE), (FAILS_ONCE, FAILS)], ids=["always", "again", "with another"]
)
def test_a_test_that_fails_again_has_failed(tests: tuple[str, ...], tmp_path: Path) -> None:
    assert run(tmp_path, *tests).returncode != 0


def test_more_than_three_tests_are_not_repeated(tmp_path: Path) -> None:
    done = run(tmp_path, *[FAILS_ONCE.replace('"runs"', f'"runs-{number}"') for number in range(4)])

    assert done.returncode != 0
    assert "repeating" not in done.stdout


def test_a_target_that_fails_without_a_test_has_failed(tmp_path: Path) -> None:
    done = run(tmp_path, "this is no Python")

    assert done.returncode != 0
