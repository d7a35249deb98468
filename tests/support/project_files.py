"""The files that belong to the project, also after its programs ran in the checkout."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IGNORED = [
    line.rstrip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines() if line and line[0] != "#"
]
"""Names of files and folders, with wildcards. test_project_files.py compares the result with git."""


def project_files(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the files below a folder whose name fits, sorted, without hidden folders and what .gitignore ignores."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and not _is_ignored(name)]
        found += [Path(place, name) for name in names if fnmatch(name, pattern) and not _is_ignored(name)]
    return sorted(found)


def _is_ignored(name: str) -> bool:
    return any(fnmatch(name, each) for each in IGNORED)
