"""gw runs from a zip archive, and from compiled files without their sources."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.project_files import project_files

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("gw_core", "gw_cli", "gw_tui", "sql")
PROGRAM = """
import importlib, sys
import gw_core
assert gw_core.__file__.startswith(sys.argv[1]), gw_core.__file__
for name in ("crontab", "embedded", "errors", "events", "operations", "selection", "testing", "types"):
    module = importlib.import_module(f"gw_core.{name}")
    assert all(hasattr(module, each) for each in module.__all__)

from gw_core import Client, TaskRegistry, run_once
tasks = TaskRegistry()
tasks.register("hello", lambda payload: None)
with Client(sys.argv[2]) as client:
    client.migrate()
    client.add("hello")
print(run_once(sys.argv[2], tasks=tasks).completed)
"""


def copied(folder: Path) -> Path:
    for name in PACKAGES:
        shutil.copytree(CHECKOUT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def zipped(folder: Path) -> Path:
    archive = folder / "app.zip"
    with zipfile.ZipFile(archive, "w") as writer:
        for name in PACKAGES:
            for path in project_files(CHECKOUT / name):
                writer.write(path, path.relative_to(CHECKOUT))
    return archive


def compiled(folder: Path) -> Path:
    copied(folder)
    assert compileall.compile_dir(folder, quiet=1, legacy=True)
    for source in folder.rglob("*.py"):
        source.unlink()
    return folder


@pytest.mark.once
@pytest.mark.parametrize("make", [zipped, compiled])
def test_a_program_runs_without_the_sources(
    make: Callable[[Path], Path], tmp_path: Path, empty_database_url: str
) -> None:
    place = make(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(place)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], env=environment, cwd="/", text=True, capture_output=True, timeout=120
        )

    ran = run("-c", PROGRAM, str(place), empty_database_url)
    assert (ran.stdout, ran.stderr) == ("1\n", "")
    listed = run("-c", "from gw_cli.main import main; main()", "doctor", "--connection", empty_database_url)
    assert (listed.returncode, "PostgreSQL" in listed.stdout) == (0, True), listed


LEFT = [
    ["ends", 1, "ValueError: no"],
    ["ends", 1, "the task asked to be retried later"],
    ["ends", 2, "no"],
    ["last", 0, None],
    ["overdue", 1, "TaskTimeoutError: the task took longer than its timeout of 50ms"],
    ["slow", 2, "cancelled by a task"],
]


@pytest.mark.once
def test_a_worker_works_on_after_its_package_was_removed(tmp_path: Path, empty_database_url: str) -> None:
    place = copied(tmp_path / "place")
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("removed_package.py"), place, empty_database_url],
        env={**os.environ, "PYTHONPATH": str(place)},
        cwd="/",
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["late"] == []
    assert found["code"] == 0
    assert [[task, attempts, error and error.partition(" (")[0]] for task, attempts, error in found["left"]] == LEFT
