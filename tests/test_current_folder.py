"""The current folder is read where it may have been deleted: a deployment does that while a worker runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support.project_files import ROOT, project_files

WHERE_IT_EXISTS = {
    "gw_core/runtime/files.py": "the one way to ask for it",
    "gw_cli/project.py": "a command has read it before, for its settings",
    "gw_cli/name_completion.py": "completes nothing where it is gone",
}


def test_no_module_asks_for_the_current_folder_without_expecting_that_it_is_gone() -> None:
    asks = re.compile(r"\bPath\.cwd\(\)|\bos\.getcwd\(\)")
    packages = [ROOT / name for name in ("gw_core", "gw_cli", "gw_tui")]
    paths = [path for package in packages for path in project_files(package, "*.py")]

    found = {path.relative_to(ROOT).as_posix() for path in paths if asks.search(path.read_text("utf-8"))}

    assert found == set(WHERE_IT_EXISTS)


def test_a_command_says_that_the_current_folder_was_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    script = 'cd "$1" && rmdir "$1" && exec "$2" -m gw_cli list'
    ended = subprocess.run(["sh", "-c", script, "sh", str(folder), sys.executable], stderr=subprocess.PIPE, check=False)

    assert (ended.returncode, ended.stderr) == (2, b"gw: the current folder was deleted; change to another one\n")
