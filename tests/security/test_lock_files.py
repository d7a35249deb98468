"""Development and CI install nothing that is not pinned with hashes; the audit of the lock files needs no network."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def audited(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECKOUT / ".ci" / "audit", root], capture_output=True, text=True, check=False
    )


def test_the_lock_files_pass_the_audit() -> None:
    assert audited(CHECKOUT).stderr == ""


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        pytest.param(
            ".ci/locks/dev.txt",
            lambda text: re.sub(r"(rich==\S+) \\\n( +--hash=\S+( \\)?\n)+", r"\1\n", text),
            r"dev\.txt: rich==\S+ has no sha256 hash",
            id="a package without a hash",
        ),
        pytest.param(
            ".ci/locks/test.txt",
            lambda text: text.replace("psycopg-pool==", "psycopg-pool>="),
            "test.txt: 'psycopg-pool>=.*' is not pinned",
            id="a range",
        ),
        pytest.param(
            ".ci/locks/dev.txt",
            lambda text: re.sub(r"psycopg-pool==\S+", "psycopg-pool==3.2.6", text),
            r"dev\.txt: psycopg_pool==3\.2\.6 is not .*>=3\.3\.3",
            id="a version that pyproject.toml excludes",
        ),
        pytest.param(
            "pyproject.toml",
            lambda text: text.replace('"json5>=', '"new-dependency>=1", "json5>='),
            "demo.txt: new-dependency>=1 is missing; run: make lock",
            id="a new dependency",
        ),
        pytest.param(
            ".ci/locks/demo.txt",
            lambda text: re.sub(r"rich==\S+", "rich==14.0.0", text),
            r"demo\.txt: rich==14\.0\.0 differs from dev\.txt",
            id="files that differ",
        ),
        pytest.param(
            ".ci/locks/ha.txt",
            lambda text: text.replace("\npatroni==", "\npatroni==0."),
            "ha.txt: patroni==0.",
            id="a version that the separate group does not allow",
        ),
        pytest.param(".ci/locks/pip.txt", lambda _text: "", "pip is not pinned", id="pip itself"),
    ],
)
def test_the_audit_finds(file: str, change: Callable[[str], str], words: str, tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT / ".ci", tmp_path / ".ci")
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    text = (tmp_path / file).read_text()
    (tmp_path / file).write_text(change(text))

    found = audited(tmp_path)

    assert found.returncode == 1
    assert re.search(words, found.stderr)


def test_the_environments_are_installed_with_hashes_alone() -> None:
    installs = [line.strip() for line in (CHECKOUT / ".ci" / "venv").read_text().splitlines() if "pip install" in line]

    assert len(installs) == 3
    for line in installs:
        assert "--require-hashes" in line or "--no-deps --no-build-isolation" in line


def test_the_pool_of_connections_is_one_that_keeps_its_threads() -> None:
    assert '"psycopg_pool>=3.3.3"' in (CHECKOUT / "pyproject.toml").read_text()
