"""gw runs from a zip archive, and from compiled files without their sources."""

from __future__ import annotations

import compileall
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


UPGRADED = """
import shutil, sys, threading, time
import psycopg
from gw_core import Client, Runner, TaskRegistry

def fail(payload):
    raise ValueError("no")

def last(payload, context):
    began.set()
    while True:
        context.checkpoint()
        time.sleep(0.01)

place, url = sys.argv[1:]
began, tasks = threading.Event(), TaskRegistry()
tasks.register("fail", fail)
tasks.register("last", last)
with Client(url) as client:
    client.migrate()
runner = Runner(url, tasks=tasks, handle_signals=False)
runner.start()
for thread in threading.enumerate():
    if thread.name == "gw-read-statements":
        thread.join(60)
shutil.rmtree(f"{place}/sql")
with psycopg.connect(url, autocommit=True) as connection:
    for task in ("fail", "last"):
        connection.execute("select from graphile_worker.add_job(%s)", [task])
    began.wait(60)
    while not connection.execute("select 1 from graphile_worker.jobs where last_error is not null").fetchall():
        time.sleep(0.01)
    runner.stop()
    print(runner.wait().exit_code)
    jobs = "select task_identifier, attempts, locked_by, last_error like 'ValueError%' from graphile_worker.jobs"
    print(sorted(connection.execute(jobs).fetchall()))
"""


@pytest.mark.once
def test_a_worker_ends_well_after_an_upgrade_has_deleted_its_statements(
    tmp_path: Path, empty_database_url: str
) -> None:
    place = copied(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", UPGRADED, str(place), empty_database_url],
        env={**os.environ, "PYTHONPATH": str(place)},
        cwd="/",
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.stdout == "0\n[('fail', 1, None, True), ('last', 0, None, None)]\n", ran
