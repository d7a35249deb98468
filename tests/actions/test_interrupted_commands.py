"""Ctrl-C at each of the waits of a command for the database."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue
from support.waiting import wait_until

from gw_cli import bulk_command
from gw_cli.exit_codes import ExitCode

pytestmark = pytest.mark.once

COMMANDS = ("stats --exact --tasks", "list --payload", "retry --all --yes", "pause queue:q")


PLACES = [("while it waits", line) for line in COMMANDS]
PLACES += [("while it reads", "retry --all --yes"), ("before an error", "retry --all --yes")]


@pytest.mark.parametrize(("place", "line"), PLACES)
def test_ctrl_c_ends_a_command_as_interrupted_wherever_it_waits(
    gw: CliProgram, queue: Queue, monkeypatch: pytest.MonkeyPatch, line: str, place: str
) -> None:
    queue.failed("mail")
    queue.ready("mail", queue_name="q")
    ends = []
    for number in count(1):
        with monkeypatch.context() as patch:
            patch.setattr(logging.getLogger(), "handlers", [])  # those of the tests: the driver's log goes to stderr
            waits = _interrupt(patch, at=number, place=place)
            ended = gw(*line.split())
        if next(waits) <= number:  # it has ended before
            break
        ends.append((number, ended.code, ended.err))

    assert len(ends) >= 3
    assert [each for each in ends if each[1] != ExitCode.INTERRUPTED or each[2] not in ("", "gw: interrupted\n")] == []


def _interrupt(patch: pytest.MonkeyPatch, *, at: int, place: str) -> Iterator[int]:
    """Interrupt one of the waits for the database, or the driver's code in it; return the counter of the waits."""
    waits, wait = count(1), psycopg.waiting.wait

    def interrupted(work: Any, *arguments: Any, **options: Any) -> Any:
        number = next(waits)
        if number == at + 1 and place == "before an error":
            raise psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")
        if number != at:
            return wait(work, *arguments, **options)
        if place == "while it reads":
            work.close()
        raise KeyboardInterrupt

    patch.setattr(psycopg.waiting, "wait", interrupted)
    return waits


BATCHES = ("cleanup failed-jobs --yes", "cleanup unused-tasks", "retry 1", "add --from jobs.jsonl")
"""Commands that let a batch end before they do."""


@pytest.mark.parametrize("line", BATCHES)
def test_a_batch_that_waits_for_a_lock_does_not_keep_a_command_from_ending(
    gw: CliProgram, queue: Queue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jobs.jsonl").write_text('{"task": "mail"}\n')
    Path("tasks").mkdir()
    Path("tasks/kept.py").write_text("def kept(payload): pass\n")
    monkeypatch.setattr(bulk_command, "BATCH_SECONDS", 0.2)
    queue.failed("mail")
    queue.client.jobs.complete([queue.ready("unused")])

    with _interrupted_while_it_waits(queue):
        ended = gw(*line.split())

    assert ended.code == ExitCode.INTERRUPTED
    assert queue.rows("select attempts from graphile_worker._private_jobs") == [(25,)]


@contextmanager
def _interrupted_while_it_waits(queue: Queue) -> Iterator[None]:
    """Lock the jobs, interrupt the block as soon as it waits for them, and end the lock after the block or in time."""
    has_ended = threading.Event()
    waits = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

    def interrupt() -> None:
        with psycopg.connect(queue.url) as holder, psycopg.connect(queue.url, autocommit=True) as other:
            holder.execute("lock table graphile_worker._private_jobs in access exclusive mode")
            is_locked.set()
            wait_until(lambda: other.execute(waits).fetchall() or has_ended.is_set(), what="the command to wait")
            if not has_ended.is_set():
                os.kill(os.getpid(), signal.SIGINT)
                has_ended.wait(30)

    is_locked = threading.Event()
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    assert is_locked.wait(30)
    try:
        yield
    finally:
        has_ended.set()
        interrupting.join()
