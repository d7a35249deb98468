"""Run the waiting jobs of the project and record what Django's signals report."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from api import task_enqueued, task_finished, task_started

from gw_core import RunResult, run_once
from gw_core.contrib.django.worker import registry

URL = os.environ["DATABASE_URL"]


def run_jobs(lanes: list[str] | None = None) -> RunResult:
    return run_once(URL, tasks=registry(lanes=lanes), migrate=False, handle_signals=False)


def let_retries_wait() -> None:
    """Let what fails now be due in hours: a first retry, in three seconds, could belong to the same run."""
    with psycopg.connect(URL, autocommit=True) as session:
        session.execute(
            "update graphile_worker._private_jobs set attempts = attempts + 9, max_attempts = max_attempts + 9"
        )


def make_due() -> None:
    """Let jobs that wait for their next attempt run now."""
    with psycopg.connect(URL, autocommit=True) as session:
        session.execute("update graphile_worker._private_jobs set run_at = now()")


@contextmanager
def recorded_signals() -> Iterator[list[tuple[str, Any]]]:
    """Collect (signal, status, result) in the order sent."""
    found: list[tuple[str, Any]] = []
    named = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    receivers = {
        name: (
            lambda sender, task_result, name=name, **rest: found.append((name, str(task_result.status), task_result))
        )
        for name in named
    }
    for name, signal in named.items():
        signal.connect(receivers[name])
    try:
        yield found
    finally:
        for name, signal in named.items():
            signal.disconnect(receivers[name])
