"""What the tests of tasks are made with: a job, a context, and a logger that keeps its lines."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from gw_core import Job, JobContext, TaskRegistry
from gw_core.execution.context import TaskResources
from gw_core.execution.executor import execute
from gw_core.front_ends import Database, LoadedTask as LoadedTask, Outcome
from gw_core.postgres.connection.connections import ConnectionPool
from support.log_recorder import LogRecorder as LogRecorder

DEADLINE = 60.0
NOWHERE: Final = Database("postgres://localhost:1/nowhere")


def a_job(payload: object = None, *, text: str | None = None, **fields: Any) -> Job:
    known: dict[str, Any] = {
        "id": 1,
        "task": "mail",
        "payload_json": json.dumps({} if payload is None else payload) if text is None else text,
        "attempts": 1,
        "max_attempts": 25,
        "priority": 0,
        "_run_at": 1_700_000_000.25,
        "_created_at": 1_700_000_000.0,
        "_updated_at": 1_700_000_000.0,
        "revision": 0,
    }
    return Job(**{**known, **fields})


def a_context(job: Job | None = None, log: LogRecorder | None = None) -> JobContext:
    resources = TaskResources(cast(Any, None), ConnectionPool(NOWHERE), (log or LogRecorder()).logger)
    return JobContext(job or a_job(), resources, worker_id="gw-host-1", thread_name="worker-1")


def attempt(
    task: LoadedTask | None,
    job: Job | None = None,
    *,
    log: LogRecorder | None = None,
    context: JobContext | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Outcome:
    """Run a task once, as a thread of a worker does, and return how that ended."""
    assert task is not None
    context = context or a_context(job, log)
    return execute(context.job, task, context, clock)


def run(function: Callable[..., object], payload: object = None, *, text: str | None = None, **fields: Any) -> Outcome:
    """Register the function, run it once for the payload, and return how that ended."""
    registry = TaskRegistry()
    registry.register("mail", function)
    return attempt(registry.get("mail"), a_job(payload, text=text, **fields))


def in_thread(function: Callable[[], object]) -> Callable[[], Any]:
    """Start the function in a thread; the returned function waits for its result."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(DEADLINE)
        assert results, "the thread did not end in time"
        return results[0]

    return result


def run_python(script: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a process of its own, which can import what the tests can."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_program(path: Path, text: str) -> Path:
    write(path, text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path
