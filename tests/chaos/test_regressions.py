"""What runs of chaos have found, each as a scene of its own that shows it every time."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until

from gw_core import Client

from .cleanup_guard import Guard
from .fleet import ProcessStates, Slot
from .ledger import Run, read_ledger
from .servers import Cluster

pytestmark = [pytest.mark.once, pytest.mark.acceptance]

DEADLINE = 60.0


@dataclass(frozen=True, slots=True)
class Scene:
    """Servers of our own, and workers beside them."""

    cluster: Cluster
    fleet: ProcessStates

    def runs(self) -> list[Run]:
        return read_ledger(self.fleet.ledger)

    def wait_for(self, count: int, *, ended: bool = False) -> None:
        def there_are_enough() -> bool:
            return len([run for run in self.runs() if run.ended or not ended]) >= count

        wait_until(there_are_enough, deadline_seconds=DEADLINE, what=f"{count} runs", every=0.005)

    def wait_until_empty(self) -> None:
        question = "select 1 from graphile_worker._private_jobs"
        wait_until(
            lambda: not self.cluster.primary.execute(question, database="chaos"),
            deadline_seconds=DEADLINE,
            what="all jobs to be settled",
        )


@contextmanager
def a_scene(*options: str, workers: int = 2) -> Iterator[Scene]:
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="gw-chaos-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        guard = Guard(str(folder))
        stack.callback(guard.dismiss)
        cluster = Cluster(folder, guard, with_standby=False)
        stack.callback(cluster.close)
        cluster.create()
        with Client(cluster.conninfo(), max_pool_size=1) as client:
            client.migrate()
        fleet = ProcessStates(folder, guard, grace_seconds=4.0)
        stack.callback(fleet.close)
        for number in range(workers):
            slot = Slot(f"worker{number}", cluster.conninfo(), options)
            fleet.slots.append(slot)
            fleet.start(slot)
        wait_until(
            lambda: all(worker.has_begun for worker in fleet.living) and len(fleet.living) == workers,
            deadline_seconds=DEADLINE,
            what="the workers to look for jobs",
        )
        yield Scene(cluster, fleet)


def test_a_crash_just_after_a_claim_does_not_let_a_queue_run_two_jobs_at_a_time() -> None:
    """The claim was not yet on disk, so the recovered server gave the queue away while its job still ran."""
    with a_scene() as scene:
        with Client(scene.cluster.conninfo(), max_pool_size=1) as client:
            client.add("chaos", {"n": 1, "ms": 1500}, queue_name="q")
        scene.wait_for(1)
        scene.cluster.restart(signal.SIGKILL, down_for=0.0)
        scene.wait_for(1, ended=True)
        scene.wait_until_empty()

        assert [(run.how, run.attempt) for run in scene.runs()] == [("ok", 1)]


@pytest.mark.parametrize(
    "limit",
    [{"running": 1}, {"per_period": 1, "period": timedelta(hours=1)}, {"running": 1, "field": "tenant"}],
    ids=["running", "rate", "field"],
)
def test_a_crash_just_after_a_claim_does_not_let_a_limit_forget_it(limit: dict[str, Any]) -> None:
    """The claim was not yet on disk, so the recovered server let the job start again while it still ran."""
    with a_scene() as scene:
        with Client(scene.cluster.conninfo(), max_pool_size=1) as client:
            client.limits.set("limited", **limit)
            client.add("limited", {"n": 1, "ms": 1500})
        scene.wait_for(1)
        scene.cluster.restart(signal.SIGKILL, down_for=0.0)
        scene.wait_for(1, ended=True)
        scene.wait_until_empty()

        assert [(run.how, run.attempt) for run in scene.runs()] == [("ok", 1)]
