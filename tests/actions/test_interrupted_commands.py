"""Ctrl-C at each of the waits of a command for the database."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue

from gw_cli.exit_codes import ExitCode

pytestmark = pytest.mark.once

COMMANDS = ("stats --exact --tasks", "list --payload", "retry --all --yes", "pause queue:q")


@pytest.mark.parametrize("place", ["while it waits", "while it reads", "before an error"])
@pytest.mark.parametrize("line", COMMANDS)
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
