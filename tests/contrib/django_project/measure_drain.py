"""What running a task of the project costs a worker, beside a plain task of gw, in alternating rounds.

It is CPU time of this process, because that does not depend on what else the machine does. The server does the same
for both, so the ratio of jobs in a second is closer to 1.
"""

from __future__ import annotations

import logging
import statistics
import time

from worker import URL

from gw_core import Client, JobSpec, TaskRegistry, run_once
from gw_core.contrib.django.compat import logger
from gw_core.contrib.django.worker import registry

JOBS = 2_000
ROUNDS = 5
TRIES = 3
LEAST = 0.8


def plain_registry() -> TaskRegistry:
    made = TaskRegistry()

    @made.task("plain")
    def plain(payload: object) -> None:
        pass

    return made


def drain(task: str, tasks: TaskRegistry) -> float:
    """Return the CPU time of the jobs in seconds."""
    with Client(URL) as client:
        client.add_many([JobSpec(task=task, payload={"args": [n], "kwargs": {}}) for n in range(JOBS)])
    start = time.process_time()
    result = run_once(URL, tasks=tasks, migrate=False, handle_signals=False)
    seconds = time.process_time() - start
    assert result.completed == JOBS
    return seconds


def test_tasks_drain_at_four_fifths_of_the_speed_of_plain_tasks() -> None:
    # Django logs two lines for each task with INFO, which takes longer than the task.
    logger.setLevel(logging.WARNING)
    plain, django = plain_registry(), registry()
    for _ in range(TRIES):
        ratio = statistics.median(drain("plain", plain) / drain("shop.tasks.noop", django) for _ in range(ROUNDS))
        print(f"{ratio:.2f} of the speed of plain tasks")
        if ratio >= LEAST:
            return
    raise AssertionError(f"Django's tasks run at {ratio:.2f} of the speed of plain tasks")
