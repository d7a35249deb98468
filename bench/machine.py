"""Where the figures come from: machine, versions, what the server is set to, and what a commit costs."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final

import psycopg

from bench.resources import field_of
from bench.server import Server
from gw_core import __version__

COMMITS: Final = 100
SETTINGS: Final = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size")


def describe(server: Server) -> dict[str, str]:
    """Return what a reader must know to compare these figures with others."""
    return {
        "machine": _machine(),
        "system": f"{platform.system()} {platform.release()}",
        "gw": f"{__version__}{_commit()}",
        "Python": platform.python_version(),
        "psycopg": psycopg.__version__,
        "PostgreSQL": str(server.ask("show server_version")),
        "server settings": ", ".join(f"{name} {server.ask(f'show {name}')}" for name in SETTINGS),
        "commit": _commit_cost(server),
        "load before": load(),
    }


def load() -> str:
    """Return how busy the machine is: the mean number of processes that want to run, over 1 and 5 minutes."""
    one, five, _ = os.getloadavg()
    return f"{one:.1f} (1 min), {five:.1f} (5 min)"


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = field_of("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    memory = field_of("/proc/meminfo", "MemTotal")
    return f"{cores} cores, {model}" + (f", {int(memory.split()[0]) / 2**20:.0f} GiB" if memory else "")


def _commit() -> str:
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, text=True, capture_output=True
    )
    return f" ({asked.stdout.strip()})" if asked.returncode == 0 else ""


def _commit_cost(server: Server) -> str:
    """Time commits that write one small row each: what a flush to this disk costs is most of it."""
    durable, lazy = _commits(server, {}), _commits(server, {"synchronous_commit": "off"})
    return f"{durable:.2f} ms durable, {lazy:.2f} ms with synchronous_commit off (medians of {COMMITS} tiny ones)"


def _commits(server: Server, settings: Mapping[str, str]) -> float:
    with server.database() as url, psycopg.connect(url, autocommit=True) as connection:
        for name, value in settings.items():
            connection.execute("select set_config(%s, %s, false)", (name, value))
        connection.execute("create table tiny (n int)")
        durations = []
        for number in range(COMMITS):
            began = time.perf_counter()
            connection.execute("insert into tiny values (%s)", (number,))
            durations.append(time.perf_counter() - began)
    return median(durations) * 1000
