"""The sample project, and what the plugin costs those who do not use it."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from support.profiles import IS_NIGHTLY

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "gw_core.testing.pytest_plugin"


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # An editable install from before the plugin existed does not know its entry point.
    is_installed = any(each.value == PLUGIN for each in entry_points(group="pytest11"))
    return subprocess.run(
        [sys.executable, "-m", "pytest", *([] if is_installed else ["-p", PLUGIN]), *arguments],
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
        timeout=240,
    )


def test_the_sample_passes_in_two_processes(server: str) -> None:
    for needed in ("pytest_django", "sqlalchemy"):
        pytest.importorskip(needed)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_pytest(ROOT / "examples" / "testing", "-n2", "-p", "no:cacheprovider", DATABASE_URL=server)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b30 passed\b", done.stdout)
    # CPU time, which a busy machine lengthens less: five seconds of two processes.
    assert not IS_NIGHTLY or after.ru_utime - before.ru_utime < 2 * 5 * (2 if sys.dont_write_bytecode else 1)


def test_a_failure_shows_the_line_of_the_task(server: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(gw):\n"
        "    gw.tasks.register('divide', lambda payload: 1 / payload['by'])  # the line of the task\n"
        "    gw.client.add('divide', {'by': 0})\n"
        "    gw.drain()\n"
    )
    done = run_pytest(tmp_path, "-p", "no:cacheprovider", "-n0", DATABASE_URL=server)
    assert "# the line of the task" in done.stdout, done.stdout + done.stderr
    assert "E   ZeroDivisionError: division by zero" in done.stdout


ASYNC_SAMPLE = """
import asyncio

import psycopg
import pytest

from gw_core.testing import AsyncQueue


def test_a_drained_task_sees_what_it_sees_in_a_worker(gw):
    gw.connection.execute("create table public.drained (n int)")
    gw.tasks.register("fill", lambda payload, context: context.query("insert into drained values (1)"))
    gw.client.add("fill")
    gw.drain()
    gw.connection.execute("drop table drained")


@pytest.mark.anyio
async def test_committed_jobs_are_drained_on_the_loop_of_the_test(gw):
    loops = []

    async def work(payload):
        loops.append(asyncio.get_running_loop())

    gw.tasks.register("work", work)
    gw.client.add("work")
    async with await psycopg.AsyncConnection.connect(gw.url, autocommit=True) as connection:
        await AsyncQueue(connection, tasks=gw.tasks, now=gw.clock).drain()
    assert loops == [asyncio.get_running_loop()]
    gw.refute_enqueued(work)
"""


def test_the_fixture_drains_as_a_worker_runs_also_on_an_event_loop(server: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'\n")
    (tmp_path / "test_it.py").write_text(ASYNC_SAMPLE)
    done = run_pytest(tmp_path, "-p", "no:cacheprovider", "-n0", DATABASE_URL=server)
    assert re.search(r"\b2 passed\b", done.stdout), done.stdout + done.stderr


def test_the_plugin_loads_nothing_until_a_fixture_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    loaded = [name for name in sys.modules if name.startswith(('psycopg', 'gw_core'))]\n"
        "    allowed = {'gw_core', 'gw_core.runtime', 'gw_core.runtime.lazy', 'gw_core.version', 'gw_core.testing'}\n"
        f"    assert not set(loaded) - allowed - {{'{PLUGIN}'}}\n"
    )
    done = run_pytest(tmp_path, "-p", "no:cacheprovider", "-n0")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_testing_kit_does_not_need_pytest() -> None:
    script = "import sys; sys.modules['pytest'] = None; from gw_core.testing import perform; print(perform(len, 'abc'))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
