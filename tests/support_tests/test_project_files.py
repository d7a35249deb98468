"""Tests that read the files of the project do not read what its programs left there."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest
from support.project_files import ROOT, project_files

FOLDERS = ("bench", "docs", "examples", "gw_cli", "gw_core", "gw_tui", "sql", "tests")

OTHER_FOLDERS = {
    "tests/docs/test_site.py": "the site that the test builds",
    "tests/embedded/conftest.py": "an installed copy of the packages",
    "tests/embedded/test_embedded_server.py": "the data folder of a server",
    "tests/packaging/test_quick_start.py": "an environment that the test makes",
    "tests/packaging/test_without_sources.py": "a copy that the test compiles",
    "tests/support/project_files.py": "the one place",
}
"""Files that walk through folders, with what they read there instead of the project."""


def test_what_a_program_leaves_in_the_checkout_is_not_read(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "demo", tmp_path / "demo", ignore=shutil.ignore_patterns(".gw", "__pycache__"))
    before = project_files(tmp_path)
    for left in (".gw/base/1/1259", "tasks/__pycache__/demo.cpython-313.pyc", "demo.pyc", "node_modules/a/b.js"):
        path = tmp_path / "demo" / left
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xff\x00")

    assert tmp_path / "demo" / "demo.py" in before
    assert project_files(tmp_path) == before


def test_the_files_of_the_project_are_those_that_git_has() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this folder is no checkout, or git is not installed")

    files = {str(path.relative_to(ROOT)) for folder in FOLDERS for path in project_files(ROOT / folder)}

    assert files == {name for name in listed if (ROOT / name).exists()}


def test_every_other_test_that_walks_through_folders_is_named() -> None:
    walking = {
        str(path.relative_to(ROOT))
        for path in project_files(ROOT / "tests", "*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and (node.attr == "rglob" or ast.unparse(node) == "os.walk")
    }

    assert walking == OTHER_FOLDERS.keys()
