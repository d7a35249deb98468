"""Packages from npm that tests run, installed on first use into a folder that outlives the run."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest


def npm_package(package: str, version: str, *, finish: Callable[[Path], None] | None = None) -> Path:
    """Return the folder of a package; `finish` completes it once, in place of the package's own scripts.

    Without npm the test is skipped; in CI it fails.
    """
    if shutil.which("npm") is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"npm is needed in CI for {package}")
        pytest.skip(f"npm is not installed, which provides {package}")
    folder = cache_folder("gw-tests-npm") / f"{package.replace('/', '_')}@{version}"
    folder.mkdir(parents=True, exist_ok=True)
    installed = folder / "node_modules" / package
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _install(folder, f"{package}@{version}")
            if finish is not None:
                finish(installed)
            (folder / "ready").touch()
    return installed


def _install(folder: Path, what: str) -> None:
    (folder / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", what]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=200)
    assert done.returncode == 0, f"npm could not install {what}: {done.stderr}"


def cache_folder(name: str) -> Path:
    """Return a folder of this name that outlives the run."""
    given = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(given) if given else Path.home() / ".cache") / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder
