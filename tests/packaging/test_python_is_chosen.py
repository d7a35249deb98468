"""Which Python `make` takes, and its message when none fits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "python"
OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with a shell's few programs and nothing else on it."""
    folder = tmp_path / "a bin"
    folder.mkdir()
    return folder


def a_python(folder: Path, name: str, *, works: bool = True) -> Path:
    program = folder / name
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n' if works else "#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return program


def choose(path: Path, *wanted: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path), "HOME": str(path), **variables}
    return subprocess.run(
        ["/bin/sh", str(SCRIPT), *wanted], env=environment, capture_output=True, text=True, check=False
    )


def test_python3_comes_first(path: Path) -> None:
    a_python(path, f"python{OURS}")
    python = a_python(path, "python3")

    assert choose(path).stdout.strip() == str(python)


def test_a_python3_that_does_not_do_is_passed_over(path: Path) -> None:
    a_python(path, "python3", works=False)
    python = a_python(path, f"python{OURS}")

    assert choose(path).stdout.strip() == str(python)


def test_the_one_that_is_named_is_taken(path: Path) -> None:
    a_python(path, "python3")
    python = a_python(path, "mine")

    assert choose(path, PYTHON=str(python)).stdout.strip() == str(python)


def test_a_version_that_stands_only_in_pyenv_is_found(path: Path) -> None:
    a_python(path, f"python{OURS}", works=False)
    (path / ".pyenv" / "versions" / f"{OURS}.0" / "bin").mkdir(parents=True)
    python = a_python(path / ".pyenv" / "versions" / f"{OURS}.0" / "bin", "python3")

    assert choose(path, PYTHON=f"python{OURS}").stdout.strip() == str(python)


def test_a_named_one_that_does_not_run_is_rejected(path: Path) -> None:
    a_python(path, "python3")

    rejected = choose(path, PYTHON="python2")

    assert rejected.returncode == 1
    assert "PYTHON=python2 is not a Python 3.11 or newer" in rejected.stderr


def test_none_at_all_is_said_in_one_sentence(path: Path) -> None:
    a_python(path, "python3", works=False)

    rejected = choose(path, PYENV_ROOT=os.devnull)

    assert (rejected.returncode, rejected.stdout) == (1, "")
    assert rejected.stderr.startswith("no Python 3.11 or newer was found; install one")
    assert rejected.stderr.count("\n") == 1
