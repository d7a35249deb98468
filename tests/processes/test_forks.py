"""A task may fork: its children are no workers, and what happens to them does not stop the worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.queue_fixture import QueueFixture
from support.waiting import wait_until
from test_isolation import is_alive
from test_run_processes import Program

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

TASKS = '''
import multiprocessing, os, signal, subprocess, time
from gw_core import task

fork = multiprocessing.get_context("fork")

def say(text):
    with open(os.environ["RAN"], "a") as file:
        file.write(text + "\\n")

@task
def pools(payload):
    with fork.Pool(2) as pool:
        assert pool.map(abs, [-1, 2]) == [1, 2]
    say("pooled")

@task
def terminates(payload):
    child = fork.Process(target=time.sleep, args=(600,))
    child.start()
    child.terminate()
    child.join(60)
    say(f"terminated {child.exitcode}")

def fork_once(payload):
    child = os.fork()
    if child == 0:
        if payload["end"] == "raises":
            raise RuntimeError("in the child")
        return
    say(f"forked {os.waitpid(child, 0)[1]}")

@task
def forks(payload):
    fork_once(payload)

@task
async def forks_on_the_loop(payload):
    fork_once(payload)

@task(isolation="process")
def forks_isolated(payload):
    fork_once(payload)

@task
def uses_connections(payload, context):
    """A child has connections of its own, and the parent keeps its own."""
    def pid():
        return context.query("select pg_backend_pid()")[0][0]

    with context.connection() as held:
        before = pid()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                held.execute("select 1")
                os.write(writer, b"the parent's connection works; ")
            except Exception:
                pass
            os.write(writer, str(pid()).encode())
            return
        os.waitpid(child, 0)  # it cannot end the block as usual: the connection was not its own
        os.close(writer)
        with os.fdopen(reader) as answer:
            theirs = answer.read()
        held.execute("select 1")
    say(f"{theirs.isdecimal()} {theirs != str(before)} {pid() == before}")

@task(isolation="process")
def isolated(payload, context):
    sleeper = subprocess.Popen(["sleep", "600"])
    context.logger.info(f"here are {os.getpid()} {sleeper.pid}")
    sleeper.wait()

@task
def last(payload):
    say("last")
'''


class ForkingProgram(Program):
    """`gw run` with tasks that fork."""

    def output(self) -> list[str]:
        return self._ran.read_text().splitlines() if self._ran.exists() else []


@pytest.fixture
def program(site: QueueFixture, tmp_path: Path) -> Iterator[Any]:
    programs: list[ForkingProgram] = []
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "work.py").write_text(TASKS)

    def start(*options: str) -> ForkingProgram:
        programs.append(ForkingProgram(site, tmp_path, *options))
        return programs[-1]

    yield start
    for each in programs:
        each.close()


# A task, the end of its child, and its output.
FORKS = [
    ("pools", "", "pooled"),
    ("terminates", "", f"terminated {-signal.SIGTERM}"),
    ("forks", "returns", "forked 0"),
    ("forks", "raises", "forked 256"),
    ("forks_on_the_loop", "returns", "forked 0"),
    ("forks_on_the_loop", "raises", "forked 256"),
    ("forks_isolated", "returns", "forked 0"),
    ("forks_isolated", "raises", "forked 256"),
    ("uses_connections", "", "True True True"),
    ("last", "", "last"),
]


def test_forked_processes_end_with_their_task_and_leave_the_worker_running(program: Any, site: QueueFixture) -> None:
    """A pool, a child that is terminated, children whose tasks end, and one that opens connections of its own."""
    worker = program("-j", "1")
    for task, end, said in FORKS:
        before = len(worker.output())
        site.add(task, {"end": end}, max_attempts=1)
        wait_until(lambda: all(job["last_error"] for job in site.jobs()), what=f"{task} to end")
        assert [job["last_error"] for job in site.jobs()] == [], "\n".join(worker.lines)
        assert worker.output()[before:] == [said], (task, end)

    worker.signal(signal.SIGTERM)
    assert worker.end() == -signal.SIGTERM, worker.lines


@pytest.mark.parametrize("ignored", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(
    program: Any, site: QueueFixture, ignored: signal.Signals
) -> None:
    former = signal.signal(ignored, signal.SIG_IGN)
    try:
        worker = program()
    finally:
        signal.signal(ignored, former)
    site.add("last")
    wait_until(lambda: worker.output() == ["last"], what="the worker to run")

    worker.signal(ignored)
    site.add("last")
    wait_until(lambda: worker.output() == ["last", "last"], what="the worker to run on")

    worker.signal(signal.SIGTERM)
    assert worker.end() == -signal.SIGTERM
    assert not any(ignored.name in line for line in worker.lines)


PROGRAM = """#!/bin/sh
sleep 600 &
echo here are $$ $!
wait
"""


@pytest.mark.parametrize("task", ["program", "isolated"])
@pytest.mark.parametrize("options", [(), ("--processes", "1")], ids=["one process", "under a supervisor"])
def test_programs_and_isolated_tasks_end_with_a_killed_worker(
    program: Any, site: QueueFixture, tmp_path: Path, task: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "tasks" / "program").write_text(PROGRAM)
    (tmp_path / "tasks" / "program").chmod(0o755)
    site.add(task)
    worker = program(*options)
    (said,) = worker.saying("here are")
    pids = [int(pid) for pid in said.split()[-2:]]
    assert all(map(is_alive, pids))

    if options:
        os.killpg(worker.pids(1)[0], signal.SIGKILL)
    else:
        worker.signal(signal.SIGKILL)

    wait_until(lambda: not any(map(is_alive, pids)), what="what the task has started to end")
