"""Limits by slots: jobs spread over named queues, so no worker in any language runs more of them than there are."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from support.queue_fixture import DEADLINE, QueueFixture
from support.waiting import wait_until

from gw_core import JobSpec
from gw_core.errors import InvalidJobError


@dataclass
class Charge:
    tenant: str


def queues_of(limit: str, count: int, payload: Any = None) -> Counter[str | None]:
    return Counter(JobSpec(task="work", payload=payload, slots=limit).queue_name for _ in range(count))


def test_jobs_of_a_limit_are_spread_evenly_over_its_queues() -> None:
    assert queues_of("api:4", 400) == {f"api:{slot}": 100 for slot in range(4)}


@pytest.mark.parametrize(
    ("limit", "payload", "queue"),
    [
        ("tenant:{tenant}:1", {"tenant": 7}, "tenant:7:0"),
        ("tenant:{tenant}:1", Charge("acme"), "tenant:acme:0"),
        ("{user.plan}/{user.id}:1", {"user": {"id": 3, "plan": "pro"}}, "pro/3:0"),
    ],
    ids=["a mapping", "an object", "nested"],
)
def test_a_key_from_the_payload_has_its_own_queues(limit: str, payload: object, queue: str) -> None:
    assert queues_of(limit, 3, payload) == {queue: 3}


@pytest.mark.parametrize("limit", ["", "api", "api:0", "api:1001", ":4", "api:x", "{tenant}:2", "{flag}:2", "{none}:2"])
def test_a_wrong_limit_is_rejected(limit: str) -> None:
    with pytest.raises(InvalidJobError, match="slots"):
        JobSpec(task="work", payload={"flag": True, "none": None}, slots=limit)


def test_a_limit_excludes_a_queue_name() -> None:
    with pytest.raises(InvalidJobError, match="queue_name"):
        JobSpec(task="work", queue_name="slow", slots="api:4")


def test_a_spec_keeps_its_slot_when_a_field_changes() -> None:
    spec = JobSpec(task="work", slots="api:100")

    assert replace(spec, run_at=timedelta(minutes=1)).queue_name == spec.queue_name


def test_no_more_jobs_of_a_key_run_at_a_time_than_it_has_slots(site: QueueFixture) -> None:
    running: Counter[int] = Counter()
    most: Counter[int] = Counter()
    lock = threading.Lock()
    are_together = [threading.Event() for _ in range(3)]

    def work(payload: Any) -> None:
        tenant = payload["tenant"]
        with lock:
            running[tenant] += 1
            most[tenant] = max(most[tenant], running[tenant])
            if running[tenant] == 2:
                are_together[tenant].set()
        assert are_together[tenant].wait(DEADLINE), "no second job ran beside the first"
        time.sleep(0.005)
        with lock:
            running[tenant] -= 1

    site.client.add_many(JobSpec(task="work", payload={"tenant": n % 3}, slots="tenant:{tenant}:2") for n in range(120))
    with site.running({"work": work}, concurrency=8), site.running({"work": work}, concurrency=8):
        wait_until(lambda: not site.jobs(), what="every job to be done", every=0.05)

    assert most == {0: 2, 1: 2, 2: 2}
