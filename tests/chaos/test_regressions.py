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

import pytest
from support.waiting import wait_until

from gw_core import Client, JobSpec

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


def test_a_crash_just_after_a_claim_lets_no_queue_and_no_limit_forget_it() -> None:
    """The claim was not yet on disk, so the recovered server let a job start beside the one that still ran."""
    tasks = ("chaos", "limited", "paced", "tenant")
    with a_scene() as scene:
        scene.cluster.primary.execute("alter system set wal_writer_delay = '10s'")
        scene.cluster.primary.reload()
        with Client(scene.cluster.conninfo(), max_pool_size=1) as client:
            client.limits.set("limited", running=1)
            client.limits.set("paced", per_period=1, period=timedelta(hours=1))
            client.limits.set("tenant", running=1, field="tenant")
            client.add_many(
                JobSpec(task=task, payload={"n": n, "ms": 1500}, queue_name="q" if task == "chaos" else None)
                for n, task in enumerate(tasks)
            )
        scene.wait_for(len(tasks))
        scene.cluster.restart(signal.SIGKILL, down_for=0.0)
        scene.wait_for(len(tasks), ended=True)
        scene.wait_until_empty()

        assert sorted((run.n, run.how, run.attempt) for run in scene.runs()) == [(n, "ok", 1) for n in range(4)]
