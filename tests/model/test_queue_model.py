"""Whatever happens to claims, outcomes and connections in whatever order, no promise of the queue is broken.

`make model-test SECONDS=600` lets it search for longer, with longer sequences; each search is another one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from psycopg.rows import DictRow
from queue_model import FEW, FEW_EACH, TASK, Loss, Thread, WorkerPool, World, without_waiting
from support.profiles import scaled

SECONDS: Final = float(os.environ.get("GW_MODEL_SECONDS") or scaled(20))
STEPS: Final = int(os.environ.get("GW_MODEL_STEPS", "30"))
EXAMPLES: Final = 40
"""Sequences between two readings of the clock."""

PHASES: Final = (Phase.reuse, Phase.generate, *([Phase.shrink] if "GW_MODEL_SHRINK" in os.environ else []))
"""A failing sequence is made as short as it can be only when asked for: that takes minutes."""

TASKS: Final = st.sampled_from([TASK, TASK, FEW, FEW_EACH])
TENANTS: Final = st.sampled_from(["a", "b"])
QUEUES: Final = st.sampled_from([None, "q", "r"])
KEYS: Final = st.sampled_from(["k", "l"])
TARGETS: Final = st.sampled_from(["queue:q", "queue:q", "queue:r", f"task:{TASK}"])
POOLS: Final = st.sampled_from([0, 0, 1])
ENDS: Final = st.sampled_from(["ok", "raise", "retry now", "retry now", "give up", "snooze", "interrupt"])


def losses(role: str, statements: int = 3) -> st.SearchStrategy[Loss | None]:
    """No answer lost, or one: of the connection's settings, of its first statement, of a later one."""
    countdown = st.integers(1, statements)
    lost = st.builds(Loss, st.just(role), committed=st.sampled_from([True, True, False]), countdown=countdown)
    return st.one_of(lost, st.none())


LOST_CLAIMS: Final = losses("claim", statements=14)
"""A claim of two limited tasks and of the others."""


class QueueMachine(RuleBasedStateMachine):
    """Two pools with two threads each on one queue.

    What is drawn depends on nothing that the machine's speed could change, so that a failing sequence fails again.
    """

    site: tuple[str, psycopg.Connection[DictRow]]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(*self.site)

    def _pool(self, number: int) -> WorkerPool:
        return self.world.pools[number]

    @property
    def _running(self) -> list[tuple[WorkerPool, Thread]]:
        return [(pool, thread) for pool in self.world.pools for thread in pool.running]

    # -- jobs ---------------------------------------------------------------------------------------------------------

    @initialize(jobs=st.lists(st.tuples(TASKS, TENANTS, QUEUES), min_size=2, max_size=5))
    def begin_with(self, jobs: list[tuple[str, str, str | None]]) -> None:
        for task, tenant, queue in jobs:
            self.world.add(task, tenant=tenant, queue_name=queue)

    @rule(task=TASKS, tenant=TENANTS, queue=QUEUES, max_attempts=st.sampled_from([None, None, 2]))
    def add(self, task: str, tenant: str, queue: str | None, max_attempts: int | None) -> None:
        self.world.add(task, tenant=tenant, queue_name=queue, max_attempts=max_attempts)

    @rule(key=KEYS, task=TASKS, tenant=TENANTS, queue=QUEUES)
    def add_or_replace(self, key: str, task: str, tenant: str, queue: str | None) -> None:
        self.world.add(task, tenant=tenant, queue_name=queue, job_key=key)

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        self.world.remove(key)

    # -- the road -----------------------------------------------------------------------------------------------------

    @rule(pool=POOLS, loss=LOST_CLAIMS, begin=st.integers(0, 2))
    def claim(self, pool: int, loss: Loss | None, begin: int) -> None:
        self._claim(pool, loss, begin)

    def _claim(self, pool: int, loss: Loss | None, begin: int) -> None:
        self.world.claim(self._pool(pool), loss)
        for _ in range(begin):
            self._pool(pool).begin()

    @rule(which=st.integers(0, 3), how=ENDS)
    def end(self, which: int, how: str) -> None:
        if running := self._running:
            pool, thread = running[which % len(running)]
            self._end(pool, thread, how)

    @rule(pool=POOLS, how=ENDS, other=ENDS, settling=losses("settle"), claiming=LOST_CLAIMS, begin=st.integers(1, 2))
    def go_round(
        self, pool: int, how: str, other: str, settling: Loss | None, claiming: Loss | None, begin: int
    ) -> None:
        """Everything that runs ends and is settled, and the next jobs begin: steps that often follow each other."""
        for thread in self._pool(pool).running:
            self._end(self._pool(pool), thread, how)
            how = other
        self.world.settle(self._pool(pool), settling)
        self.world.judge()
        self._claim(pool, claiming, begin)

    def _end(self, pool: WorkerPool, thread: Thread, how: str) -> None:
        if how == "ok":
            pool.end(thread, None)
        else:
            self.world.fail(pool, thread, how)

    @rule(pool=POOLS, loss=losses("settle"))
    def settle(self, pool: int, loss: Loss | None) -> None:
        self.world.settle(self._pool(pool), loss)

    @rule(pool=POOLS)
    def return_jobs(self, pool: int) -> None:
        self.world.return_jobs(self._pool(pool))

    # -- what happens beside it ---------------------------------------------------------------------------------------

    @rule(pool=POOLS, loss=losses("maintenance"))
    def renew(self, pool: int, loss: Loss | None) -> None:
        self.world.renew(self._pool(pool), loss)

    @rule(intervals=st.integers(1, 3))
    def time_passes(self, intervals: int) -> None:
        self.world.time_passes(intervals)

    @rule(pool=POOLS, how=st.sampled_from(["sweep", "unlock", "reset"]))
    def take_away(self, pool: int, how: str) -> None:
        match how:
            case "sweep":
                self.world.sweep(self._pool(pool))
            case "unlock":
                self.world.unlock(self._pool(pool))
            case _:
                self.world.reset_stale()

    @rule(queues=st.lists(QUEUES, min_size=1, max_size=2))
    def add_group(self, queues: list[str | None]) -> None:
        self.world.add_group(*queues)

    @rule(count=st.integers(1, 3), on_failure=st.sampled_from(["cancel", "run"]))
    def add_after(self, count: int, on_failure: str) -> None:
        self.world.add_after(count, on_failure)

    @rule(pool=POOLS, dies=st.sampled_from([False, False, False, True]))
    def run_step(self, pool: int, dies: bool) -> None:
        self.world.run_step(self._pool(pool), dies=dies)
        if dies:
            self.world.kill(self._pool(pool))

    @rule(pool=POOLS)
    def kill(self, pool: int) -> None:
        self.world.kill(self._pool(pool))

    @rule(how=st.sampled_from(["ok", "ok", "raise", "give up"]))
    def run_on_node(self, how: str) -> None:
        self.world.run_on_node(how)

    @rule(action=st.sampled_from(["retry", "retry", "reschedule", "fail", "complete"]), which=st.integers(0, 5))
    def act(self, action: str, which: int) -> None:
        self.world.act(action, which)

    @rule(which=st.integers(0, 3))
    def drop_waiting(self, which: int) -> None:
        self.world.drop_waiting(which)

    @rule()
    def check_follow_ups(self) -> None:
        self.world.check_follow_ups()

    @rule(what=TARGETS)
    def pause(self, what: str) -> None:
        self.world.pause(what)

    @rule(what=TARGETS)
    def resume(self, what: str) -> None:
        self.world.resume(what)

    @rule(pool=st.sampled_from([None, 0, 0, 1]))
    def end_pauses(self, pool: int | None) -> None:
        self.world.end_pauses(None if pool is None else self._pool(pool))

    @rule(pool=POOLS, how=ENDS)
    def end_with_the_pause(self, pool: int, how: str) -> None:
        """The queues of what runs are paused, and everything ends while the pauses do: steps that rarely meet alone."""
        running = [(thread, thread.job) for thread in self._pool(pool).running]
        for thread, job in running:
            assert job is not None
            if job.queue_name is not None:
                self.world.pause(f"queue:{job.queue_name}")
            self._end(self._pool(pool), thread, how)
        self.world.end_pauses(self._pool(pool))

    @rule(which=st.integers(0, 3))
    def reject(self, which: int) -> None:
        if running := self._running:
            _, thread = running[which % len(running)]
            assert thread.job is not None
            self.world.reject(thread.job.id)

    @rule()
    def accept_all(self) -> None:
        self.world.accept_all()

    @rule(pool=POOLS, loss=losses("settle"))
    def stop(self, pool: int, loss: Loss | None) -> None:
        self.world.stop(self._pool(pool), loss)

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def every_promise_is_kept(self) -> None:
        self.world.judge()

    def teardown(self) -> None:
        try:
            # What is broken already has been reported; it would only be covered up by what follows from it.
            if not self.world.is_broken:
                self.world.finish()
        finally:
            self.world.close()


@pytest.fixture
def machine(model_hands: tuple[str, psycopg.Connection[DictRow]]) -> Iterator[type[QueueMachine]]:
    with without_waiting():
        yield type("QueueMachine", (QueueMachine,), {"site": model_hands})


def test_no_order_of_events_breaks_a_promise(machine: Any) -> None:
    how = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=PHASES,
        print_blob=True,
    )
    until = time.monotonic() + SECONDS
    examples = 0
    while time.monotonic() < until:
        run_state_machine_as_test(machine, settings=how)
        examples += EXAMPLES
    print(f"{examples} sequences of up to {STEPS} steps")
