"""A worker of an application starts again when its modules change: `gw run --watch` names the command."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.shell import PROGRAM, Shell, rows
from support.waiting import wait_until

APP = """
from gw_core import JobContext, TaskRegistry

tasks = TaskRegistry()

@tasks.task
def note(payload, context: JobContext):
    context.query("insert into public.noted values ('first')")
"""


def test_a_change_of_an_application_starts_its_worker_again(tmp_path: Path, database_url: str) -> None:
    pytest.importorskip("watchfiles")
    shell = Shell(tmp_path, database=database_url)
    shell.write("shop.py", APP)
    ended = shell.gw("run", "--app", "shop:tasks", "--watch")
    assert ended.code == 2
    [command] = re.findall(r"watchfiles .*'", ended.err)
    rows(database_url, "drop table if exists public.noted; create table public.noted (version text)")

    with started(shell, command):
        shell.gw("add", "note")
        wait_until(lambda: noted(database_url) == {"first"})
        shell.write("shop.py", APP.replace("first", "second"))
        wait_until(lambda: shell.gw("add", "note").code == 0 and "second" in noted(database_url))
    rows(database_url, "drop table public.noted")


def noted(url: str) -> set[str]:
    return {version for (version,) in rows(url, "select version from public.noted")}


@contextmanager
def started(shell: Shell, command: str) -> Iterator[None]:
    """Run a command with our programs; nothing of it outlives the block."""
    environment = {**shell.environment, "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(shlex.split(command), cwd=shell.folder, env=environment, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
