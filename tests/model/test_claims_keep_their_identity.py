"""A claim ends by its own outcome: sequences in which it did not, found by the model of `test_queue_model.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from queue_model import Loss, World


def test_a_failure_sent_again_does_not_end_the_next_attempt(a_world: Callable[..., World]) -> None:
    world = a_world(pools=1)
    [pool] = world.pools
    world.add(queue_name="q")
    world.claim(pool)
    pool.begin()
    world.fail(pool, pool.running[0], "retry now")
    world.settle(pool, Loss("settle", committed=True, countdown=2))
    world.judge()
    world.claim(pool)
    pool.begin()
    world.judge()
    world.settle(pool)  # again, because its answer was lost
    world.judge()
    world.finish()


def test_a_job_that_ends_while_its_pause_does_leaves_its_queue_free(a_world: Callable[..., World]) -> None:
    world = a_world(pools=1)
    [pool] = world.pools
    world.add(queue_name="q")
    world.claim(pool)
    pool.begin()
    world.pause("queue:q")
    pool.end(pool.running[0], None)
    world.end_pauses(pool)
    world.judge()
    world.finish()


def test_a_result_that_a_trigger_rejects_stays_its_pool_s(a_world: Callable[..., World]) -> None:
    world = a_world(pools=1)
    [pool] = world.pools
    rejected = world.add()
    world.add()
    world.claim(pool)
    while pool.begin():
        pass
    world.reject(rejected)
    for thread in pool.running:
        pool.end(thread, None)
    world.settle(pool)
    world.judge()
    world.claim(pool, Loss("claim", committed=False))
    world.claim(pool)
    world.judge()
    world.finish()


@pytest.mark.parametrize("how", ["ok", "raise", "snooze"])
def test_a_worker_goes_on_after_it_has_lost_a_job_while_another_is_at_a_step(
    a_world: Callable[..., World], how: str
) -> None:
    world = a_world(pools=1)
    [pool] = world.pools
    for _ in range(2):
        world.add()
    world.claim(pool)
    while pool.begin():
        pass
    lost, other = pool.running
    world.run_step(pool, dies=False)
    world.unlock(pool)
    if how == "ok":
        pool.end(lost, None)
    else:
        world.fail(pool, lost, how)
    world.settle(pool)
    pool.end(other, None)
    world.finish()
