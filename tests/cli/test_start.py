"""A command loads only what it needs, and collects no garbage while it starts and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.database_proxy import DatabaseProxy

PROGRAM = """
import atexit, gc, sys

collections = []
gc.callbacks.append(lambda phase, info: collections.append(phase))

def dataclasses():
    ours = [module for name, module in sys.modules.items() if name.startswith("gw_")]
    return {
        found
        for module in ours
        for found in vars(module).values()
        if "__dataclass_fields__" in getattr(found, "__dict__", ()) and found.__module__ == module.__name__
    }

def report():
    print(len(collections), gc.get_freeze_count(), len(dataclasses()), *sys.modules, file=sys.stderr, end="")

from gw_cli.__main__ import main
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
    dataclasses: int
    modules: frozenset[str]


def run(folder: Path, url: str, *arguments: str) -> Ended:
    environment = os.environ | {"DATABASE_URL": url}
    argv = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    collections, frozen, dataclasses, *modules = done.stderr.splitlines()[-1].split(" ")
    return Ended(done.stdout, int(collections), int(frozen), int(dataclasses), frozenset(modules))


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


READERS = (
    "gw_core.domain.reports.query_results",
    "gw_core.postgres.road.bulk_actions",
    "gw_core.postgres.read.doctor",
    "gw_core.postgres.read.history",
    "gw_core.postgres.read.job_queries",
    "gw_core.selection",
)
MIGRATIONS = "gw_core.postgres.schema.migrations"
WORKERS = ("gw_core.domain.cron.crontab", "gw_core.execution", MIGRATIONS, "gw_core.worker", "json5")
FRONT_ENDS = ("gw_tui", "pydantic", "rich", "textual")
SELDOM = ("gw_core.tasks.references", "json5", "uvloop", MIGRATIONS)
"""What a worker needs for plugins, some payloads in a crontab, or an outdated schema."""
MAX_DATACLASSES = 11
"""A frozen dataclass takes forty times as long to define as a struct, see ADR 5."""


@pytest.mark.parametrize(
    ("arguments", "needless"),
    [
        (("add", "mail"), (*READERS, *WORKERS, *FRONT_ENDS, "hashlib")),
        (("list",), (*WORKERS, *FRONT_ENDS)),
        (("run", "--once"), (*READERS, *FRONT_ENDS, *SELDOM, "gw_core.domain.cron.crontab")),
        (("run", "--once", "--crontab", "jobs.cron"), (*READERS, *FRONT_ENDS, *SELDOM)),
    ],
    ids=["add", "list", "run", "run with a crontab"],
)
def test_a_command_loads_nothing_that_it_does_not_need(
    tmp_path: Path, database_url: str, arguments: tuple[str, ...], needless: tuple[str, ...]
) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mail.py").write_text("def mail(payload): ...\n")
    (tmp_path / "jobs.cron").write_text('0 4 * * * mail {"to": "all"}\n')

    ended = run(tmp_path, database_url, *arguments)

    assert [each for each in needless if each in ended.modules] == []
    assert ended.dataclasses <= MAX_DATACLASSES


@pytest.mark.direct("behind a pooler a start checks what kind of pooler it is")
@pytest.mark.parametrize(
    ("arguments", "sessions", "most"),
    [(("run", "--once"), {"gw:maintenance", "gw:claim"}, 13), (("list",), {"gw"}, 6), (("add", "mail"), {"gw"}, 7)],
    ids=["run", "list", "add"],
)
def test_a_command_makes_few_connections_and_round_trips(
    tmp_path: Path, database_url: str, arguments: tuple[str, ...], sessions: set[str], most: int
) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "mail.py").write_text("def mail(payload): ...\n")
    proxy = DatabaseProxy(database_url)
    statements = proxy.record()

    run(tmp_path, proxy.url, *arguments)
    proxy.close()

    print(*statements, sep="\n")
    assert {name for name, _ in statements} == sessions
    assert len(statements) <= most


INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "gw_cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from gw_cli.__main__ import main
main()
"""


def test_a_ctrl_c_during_the_imports_prints_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, "--version"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
