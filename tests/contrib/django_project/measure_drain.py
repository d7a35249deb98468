"""How fast the tasks of the project run, beside plain tasks of gw, in alternating rounds."""

from __future__ import annotations

import logging
import time

from worker import URL

from gw_core import Client, JobSpec, TaskRegistry, run_once
from gw_core.contrib.django.compat import logger
from gw_core.contrib.django.worker import registry

JOBS = 10_000
ROUNDS = 5


def plain_registry() -> TaskRegistry:
    made = TaskRegistry()

    @made.task("plain")
    def plain(payload: object) -> None:
        pass

    return made


def drain(task: str, tasks: TaskRegistry) -> float:
    """Return how many seconds the jobs take."""
    with Client(URL) as client:
        client.add_many([JobSpec(task=task, payload={"args": [n], "kwargs": {}}) for n in range(JOBS)])
    start = time.perf_counter()
    result = run_once(URL, tasks=tasks, migrate=False, handle_signals=False)
    seconds = time.perf_counter() - start
    assert result.completed == JOBS
    return seconds


def test_tasks_drain_at_four_fifths_of_the_speed_of_plain_tasks() -> None:
    # Django logs two lines for each task with INFO, which takes longer than the task.
    logger.setLevel(logging.WARNING)
    kinds = {"plain": plain_registry(), "shop.tasks.noop": registry()}
    best = dict.fromkeys(kinds, float("inf"))
    for _ in range(ROUNDS):
        for task, tasks in kinds.items():
            best[task] = min(best[task], drain(task, tasks))

    ratio = best["plain"] / best["shop.tasks.noop"]
    print(f"{ratio:.2f} of {JOBS / best['plain']:,.0f} jobs per second")
    assert ratio >= 0.8
