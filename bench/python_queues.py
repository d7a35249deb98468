"""procrastinate and pgqueuer from PyPI, in a virtual environment of their own, each set up as it is fastest."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

from psycopg.conninfo import conninfo_to_dict

from bench.peers import HERE, Jobs, of_tests, task_environment
from bench.processes import Command, run_briefly
from bench.server import ask

PACKAGES: Final = ("procrastinate==3.10.0", "pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0", "psycopg[binary]")


@dataclass(frozen=True, slots=True)
class _FromPyPI:
    """A peer, worked through a program beside this file: `install`, `fill COUNT`, `drain`."""

    program: ClassVar[str]
    table: ClassVar[str]
    finishes: bool = False

    def install(self, url: str) -> None:
        """Make an empty database ready."""
        self._run(url, "install")

    def fill(self, url: str, jobs: Jobs) -> None:
        """Add jobs of the task that does nothing."""
        self._run(url, "fill", str(jobs.count))

    def jobs_left(self, url: str) -> int:
        """Return how many jobs there still are; both delete what they completed."""
        return int(ask(url, f"select count(*) from {self.table}"))

    def worker(self, url: str, folder: Path, *, once: bool = True) -> Command:
        """Return the program that runs what there is."""
        return Command(argv=self._argv("drain"), folder=folder, environment=task_environment(folder) | _address(url))

    def _argv(self, *arguments: str) -> Sequence[str]:
        return (str(peers_python()), str(HERE / "programs" / self.program), *arguments)

    def _run(self, url: str, *arguments: str) -> None:
        environment = {"PATH": os.defpath, **_address(url)}
        run_briefly(self._argv(*arguments), f"{self.program} {arguments[0]}", environment=environment)


class Procrastinate(_FromPyPI):
    """On uvloop, autocommit, without a check of each pooled connection; jobs are deleted when done."""

    program = "procrastinate_worker.py"
    table = "procrastinate_jobs"


class PgQueuer(_FromPyPI):
    """On uvloop and asyncpg, one connection, 1,000 jobs a claim."""

    program = "pgqueuer_worker.py"
    table = "pgqueuer"


def _address(url: str) -> dict[str, str]:
    """Return the server's address as libpq's variables: that is what all drivers understand alike."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    given = conninfo_to_dict(url)
    return {variable: str(given[name]) for name, variable in names.items() if given.get(name)}


@cache
def peers_python() -> Path:
    """Return the Python of an environment that holds the peers, made on first use; raises `NotMeasuredError`."""
    cache: Path = of_tests("npm").cache_folder("gw-bench-pypi")
    folder = cache / f"python-{sys.version_info[0]}.{sys.version_info[1]}"
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "venv" / "bin" / "python"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted, ready = json.dumps(PACKAGES), folder / "ready"
        if not ready.exists() or ready.read_text() != wanted:
            run_briefly((sys.executable, "-m", "venv", "--clear", str(folder / "venv")), "making a place for peers")
            run_briefly((str(python), "-m", "pip", "install", "-q", *PACKAGES), "installing peers from PyPI")
            ready.write_text(wanted)
    return python
