"""What cancelling running jobs will do, by the state of their workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from gw_core.operations import FoundJob, WorkerInfo
from gw_tui.text import formatting, sanitize


def cancel_effects(jobs: Iterable[FoundJob], workers: Mapping[str, WorkerInfo]) -> Iterator[str]:
    """Yield a line for each worker that holds some of the jobs."""
    held = Counter(each.job.locked_by for each in jobs if each.job.locked_by is not None)
    for worker_id, count in sorted(held.items()):
        yield f"{sanitize.line(worker_id, 40)}: {_effect(count, workers.get(worker_id))}"


def _effect(count: int, worker: WorkerInfo | None) -> str:
    jobs = formatting.counted(count, "job")
    if worker is None or worker.heartbeat_age is None:
        return f"{jobs}; sends no heartbeats, so it may be unable to cancel, like a Node.js worker"
    age = formatting.duration(worker.heartbeat_age)
    if worker.is_stale:
        return f"{jobs}; gone for {age}, nothing stops. Release its locks with u instead"
    return f"asks {jobs} to stop; last heartbeat {age} ago"
