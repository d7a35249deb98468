"""A command loads only what it needs, and collects no garbage while it starts and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAM = """
import atexit, gc, sys

collections = []
gc.callbacks.append(lambda phase, info: collections.append(phase))

def report():
    print(len(collections), gc.get_freeze_count(), *sys.modules, file=sys.stderr, end="")

from gw_cli.main import main
atexit.register(report)
collections.clear()
main()
"""
TASK = """
import gc

def collect(payload):
    print("threshold", *gc.get_threshold(), "frozen", gc.get_freeze_count() > 1000)
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ran a command."""

    out: str
    collections: int
    frozen: int
    modules: frozenset[str]


def run(folder: Path, url: str, *arguments: str) -> Ended:
    environment = os.environ | {"DATABASE_URL": url}
    argv = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    collections, frozen, *modules = done.stderr.splitlines()[-1].split(" ")
    return Ended(done.stdout, int(collections), int(frozen), frozenset(modules))


@pytest.mark.parametrize("arguments", [("list",), ("queues",), ("add", "mail"), ("pauses",)], ids=" ".join)
def test_a_short_command_collects_no_garbage(tmp_path: Path, database_url: str, arguments: tuple[str, ...]) -> None:
    ended = run(tmp_path, database_url, *arguments)

    assert ended.collections == 0
    assert ended.frozen > 1000


def test_a_worker_collects_garbage_as_usual_once_it_has_started(tmp_path: Path, database_url: str) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "collect.py").write_text(TASK)
    run(tmp_path, database_url, "add", "collect")
    usual = subprocess.run(
        [sys.executable, "-c", "import gc; print(*gc.get_threshold())"], capture_output=True, text=True, check=True
    )

    ended = run(tmp_path, database_url, "run", "--once")

    assert f"threshold {usual.stdout.strip()} frozen True" in ended.out
