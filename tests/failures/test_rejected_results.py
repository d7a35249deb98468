"""A trigger, constraint or policy that rejects one outcome does not hold up the others."""

from __future__ import annotations

import pytest
from support.queue_fixture import NEVER, QueueFixture, RunRecord
from support.waiting import wait_until

from gw_core import GiveUp
from gw_core.events import JobCompleted
from gw_core.front_ends import JobResultRejected
from gw_core.worker import settler


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settler, "MIN_REJECTED_DELAY", 0.1)


PROTECTED = (
    "create function protect() returns trigger language plpgsql as "
    "$$begin if old.payload->>'n' in ('3', '7') then {words}; end if; return old; end$$"
)


def protect(own_site: QueueFixture, words: str = "raise 'this job is protected'") -> None:
    own_site.run(PROTECTED.format(words=words))
    own_site.run("create trigger protect before delete on _private_jobs for each row execute function protect()")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("raise 'this job is protected'", id="raised"),
        pytest.param("perform 1 / 0", id="a fault in it"),
        pytest.param("perform 1 from no_such_table", id="a table it misses"),
        pytest.param("raise insufficient_privilege", id="no right"),
    ],
)
def test_what_a_trigger_rejects_stays_and_the_rest_goes_through(own_site: QueueFixture, words: str) -> None:
    protect(own_site, words)
    gate = own_site.gate()
    own_site.fill(10)
    with own_site.running({"work": gate}, poll_interval=NEVER, concurrency=10) as running:
        gate.wait_for(10)
        gate.open()
        running.recorded.wait_for(JobCompleted, count=8)
        running.recorded.wait_for(JobResultRejected, count=2)
        rejected = {event.job.id for event in running.recorded.of(JobResultRejected)}
        assert {row["id"] for row in own_site.jobs()} == rejected
        assert set(own_site.held()) == rejected
        own_site.run("drop trigger protect on _private_jobs")
        running.recorded.wait_for(JobCompleted, count=10)

    assert own_site.jobs() == []
    assert len(running.log.of("error")) == 2


def test_many_rejected_outcomes_delay_no_other_job(own_site: QueueFixture) -> None:
    own_site.run(PROTECTED.format(words="raise 'protected'").replace("in ('3', '7')", "<> '0'"))
    own_site.run("create trigger protect before delete on _private_jobs for each row execute function protect()")
    own_site.fill(300)
    with own_site.running({"work": lambda payload: None}, concurrency=4) as running:
        running.recorded.wait_for(JobResultRejected, count=300)
        for _ in range(3):
            done = own_site.add(payload={"n": 0})
            running.recorded.wait_for(JobCompleted, lambda event, job_id=done: event.job.id == job_id)
        own_site.run("drop trigger protect on _private_jobs")
        running.recorded.wait_for(JobCompleted, count=303)

    assert own_site.jobs() == []
    assert len(running.recorded.of(JobResultRejected)) == 300


def test_a_queue_is_freed_when_the_rejected_result_of_its_job_is_written(own_site: QueueFixture) -> None:
    protect(own_site)
    own_site.fill(5, queue="case n when 3 then 'held' else 'q' || n end")
    with own_site.running({"work": RunRecord()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(JobCompleted, count=4)
        running.recorded.wait_for(JobResultRejected)
        assert own_site.held() == [own_site.jobs()[0]["id"], "held"]
        own_site.run("drop trigger protect on _private_jobs")
        running.recorded.wait_for(JobCompleted, count=5)
        wait_until(lambda: own_site.held() == [])


def test_a_failure_that_breaks_a_constraint_of_yours_delays_no_other_job(own_site: QueueFixture) -> None:
    own_site.run("alter table _private_jobs add constraint polite check (last_error not like '%%damn%%')")

    def work(payload: dict[str, int]) -> None:
        if payload["n"] == 2:
            raise GiveUp("damn")
        if payload["n"] == 4:
            raise GiveUp("oh dear")

    own_site.fill(6)
    result = own_site.run_once({"work": work})

    assert (result.completed, result.failed) == (4, 1)
    assert [row["last_error"] for row in own_site.jobs()] == [None, "oh dear (given up by the task on attempt 1 of 25)"]
    own_site.run("alter table _private_jobs drop constraint polite")


def test_a_single_run_ends_although_a_result_is_rejected(own_site: QueueFixture) -> None:
    protect(own_site)
    own_site.fill(4)

    result = own_site.run_once({"work": RunRecord()})
    assert (result.completed, result.exit_code) == (3, 1)
