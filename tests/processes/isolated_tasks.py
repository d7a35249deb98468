"""Tasks for processes of their own, in a module that these can find."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from gw_core import GiveUp, JobContext, JobSpec, RetryAfter, Snooze, task


@dataclass
class Letter:
    to: str
    copies: int = 1


class CardDeclinedError(Exception):
    pass


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


# -- ends that must be the same in a thread and in a process ---------------------------------------------------------


def returns(payload: Any) -> str:
    return "whatever"


def typed(letter: Letter) -> None:
    assert isinstance(letter, Letter), letter


def raises(payload: Any) -> None:
    raise CardDeclinedError("card \x00 refused\ud800")


RULES: dict[type[BaseException], Any] = {
    CardDeclinedError: GiveUp,
    OSError: lambda attempt: 90 * attempt,
    LookupError: lambda attempt: GiveUp,
    Exception: lambda attempt: str(attempt),
}


@task(isolation="process", retry=RULES)
def with_rules(payload: str) -> None:
    raise {
        "card": CardDeclinedError("refused"),
        "network": ConnectionError("reset"),
        "table": KeyError("amount"),
        "broken rule": ValueError("odd"),
    }[payload]


def raises_without_words(payload: Any) -> None:
    raise UnspeakableError


def raises_silently(payload: Any) -> None:
    raise CardDeclinedError


def adds_what_is_no_job(payload: Any, context: JobContext) -> None:
    context.add_many([cast("JobSpec", "later")])


def gives_up(payload: Any) -> None:
    raise GiveUp("for good")


def retries(payload: Any) -> None:
    raise RetryAfter(timedelta(seconds=90), "busy")


def snoozes(payload: Any) -> None:
    raise Snooze(7, "later")


def exits(payload: Any) -> None:
    sys.exit("enough")


def exits_with_an_object(payload: Any) -> None:
    sys.exit(7)


def exits_with_a_boolean(payload: Any) -> None:
    sys.exit(True)


def generates(payload: Any) -> Any:
    yield 1


def returns_a_generator(payload: Any) -> Any:
    return (n for n in (1, 2))


def batch(payload: list[int]) -> list[object]:
    return [ValueError(f"odd {n}") if n % 2 else None for n in payload]


def batch_of_another_length(payload: list[int]) -> list[object]:
    return [None]


async def asynchronous(payload: Any) -> None:
    raise CardDeclinedError("asynchronously")


# -- what the context offers -----------------------------------------------------------------------------------------


def uses_the_context(payload: Any, context: JobContext) -> None:
    context.logger.info(f"job {context.job.id} of {context.queue_name} in {context.thread_name} of {context.worker_id}")
    context.logger.debug("nobody wants to know")
    context.logger.warning("scoped", exc_info=ValueError("told"), extra={"step": "two"})
    added = context.add("later", {"n": 1}, run_at=timedelta(hours=1), expires_at=timedelta(hours=2), job_key="key")
    ids = context.add_many([JobSpec(task="later", payload={"n": n}, flags=["slow"], unique_for=60) for n in (2, 3)])
    assert added is not None
    with context.connection() as connection, connection.transaction():
        found = connection.execute("select count(*) from graphile_worker._private_jobs").fetchone()
    assert found is not None
    context.logger.info(f"{len({added.id, *ids})} added, {found[0]} there, {context.query('select 7')}")


def has_steps(payload: Any, context: JobContext) -> None:
    number = context.step("number", random.random)
    with context.step("rows") as step:
        for row in range(step.cursor or 0, 3):
            with Path(payload["log"]).open("a") as log:
                log.write(f"{row} {number}\n")
            if row == 1 and not Path(payload["goes on"]).exists():
                Path(payload["waits"]).touch()
                while not context.is_stopping:
                    time.sleep(0.01)
            step.save(row + 1)


@task("optional")
def optional(letter: Letter | None) -> None: ...


def adds_null(payload: Any, context: JobContext) -> None:
    context.add(optional.job(None))


def adds_what_is_rejected(payload: Any, context: JobContext) -> None:
    context.add("refused")


def adds_in_a_transaction(payload: Any, context: JobContext) -> None:
    with context.connection() as connection:
        context.add("later", conn=connection)


def says_who(payload: Any, context: JobContext) -> None:
    context.logger.info(str(os.getpid()))


# -- ends that only a process can have -------------------------------------------------------------------------------


def kills_itself(payload: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(payload: Any) -> None:
    ctypes.string_at(0)


def leaves(payload: Any) -> None:
    os._exit(3)


def logs_whether_attempts_remain(payload: Any, context: JobContext) -> None:
    context.logger.info("waiting")
    context.should_stop.wait()
    context.logger.info(f"remain {context.should_stop.keeps_attempts:d}")


def waits_for_the_stop(payload: Any, context: JobContext) -> None:
    context.logger.info(f"waiting {os.getpid()}")
    context.should_stop.wait(600)
    raise Snooze(0, f"stopped {'by force' if context.should_stop.forced else 'gracefully'}: {context.stop_reason}")


def never_ends(payload: Any, context: JobContext) -> None:
    sleeper = subprocess.Popen(["sleep", "600"])
    context.logger.info(f"hogging {os.getpid()} {sleeper.pid}")
    hogs_the_interpreter()


def hogs_the_interpreter() -> None:
    # PyDLL calls hold the interpreter: no other thread of this process runs until the call returns.
    ctypes.PyDLL(None).sleep(600)


def sends_half_a_message(payload: Any, context: JobContext) -> None:
    context.logger.info(f"hogging {os.getpid()}")
    writes_to_the_line("\x00\x00\x10\x00and")
    hogs_the_interpreter()


def writes_to_the_line(text: str) -> None:
    # The line to the worker is the only socket of this process.
    for number in range(3, 64):
        try:
            is_socket = stat.S_ISSOCK(os.fstat(number).st_mode)
        except OSError:
            continue
        if is_socket:
            os.write(number, text.encode("latin-1"))
