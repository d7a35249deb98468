"""A trigger, constraint or policy that refuses one outcome does not hold up the others."""

from __future__ import annotations

import pytest
from core_support import NEVER, Ledger, Site
from support import wait_until

from gw_core import JobCompleted, JobResultRefused
from gw_core.domain.outcome import GiveUp

PROTECTED = (
    "create function protect() returns trigger language plpgsql as "
    "$$begin if old.payload->>'n' in ('3', '7') then {words}; end if; return old; end$$"
)


def protect(site: Site, words: str = "raise 'this job is protected'") -> None:
    site.run(PROTECTED.format(words=words))
    site.run("create trigger protect before delete on _private_jobs for each row execute function protect()")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("raise 'this job is protected'", id="raised"),
        pytest.param("perform 1 / 0", id="a fault in it"),
        pytest.param("perform 1 from no_such_table", id="a table it misses"),
        pytest.param("raise insufficient_privilege", id="no right"),
    ],
)
def test_what_a_trigger_refuses_stays_and_the_rest_goes_through(site: Site, words: str) -> None:
    protect(site, words)
    gate = site.gate()
    site.fill(10)
    with site.running({"work": gate}, poll_interval=NEVER, concurrency=10) as running:
        gate.wait_for(10)
        gate.open()
        running.heard.wait_for(JobCompleted, count=8)
        running.heard.wait_for(JobResultRefused, count=2)
        refused = {event.job.id for event in running.heard.of(JobResultRefused)}
        assert {row["id"] for row in site.jobs()} == refused
        assert set(site.held()) == refused
        site.run("drop trigger protect on _private_jobs")
        running.heard.wait_for(JobCompleted, count=10)

    assert site.jobs() == []
    assert len(running.log.of("error")) == 2


def test_a_queue_is_freed_when_the_refused_result_of_its_job_is_written(site: Site) -> None:
    protect(site)
    site.fill(5, queue="case n when 3 then 'held' else 'q' || n end")
    with site.running({"work": Ledger()}, poll_interval=NEVER) as running:
        running.heard.wait_for(JobCompleted, count=4)
        running.heard.wait_for(JobResultRefused)
        assert site.held() == [site.jobs()[0]["id"], "held"]
        site.run("drop trigger protect on _private_jobs")
        running.heard.wait_for(JobCompleted, count=5)
        wait_until(lambda: site.held() == [])


def test_a_failure_that_breaks_a_constraint_of_yours_holds_up_nobody(site: Site) -> None:
    site.run("alter table _private_jobs add constraint polite check (last_error not like '%%damn%%')")

    def work(payload: dict[str, int]) -> None:
        if payload["n"] == 2:
            raise GiveUp("damn")
        if payload["n"] == 4:
            raise GiveUp("oh dear")

    site.fill(6)
    result = site.run_once({"work": work})

    assert (result.completed, result.failed) == (4, 1)
    assert [row["last_error"] for row in site.jobs()] == [None, "oh dear"]
    site.run("alter table _private_jobs drop constraint polite")


def test_a_single_run_ends_although_a_result_is_refused(site: Site) -> None:
    protect(site)
    site.fill(4)

    assert site.run_once({"work": Ledger()}).completed == 3
