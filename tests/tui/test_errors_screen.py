"""Equal errors in one row: counted, still growing or not, retried by one and then all."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from console_fixture import Console, play, queue_source, run, search_of
from support.console_source import QueueSource
from support.queue_fixture import QueueFixture
from textual.widgets import Button

from gw_core import Client, GiveUp, JobState, RetryAfter
from gw_core.front_ends import FoundJob
from gw_core.selection import parse
from gw_tui.rules.error_groups import error_groups, fingerprint


def failing(source: Any) -> list[FoundJob]:
    return [each for each in source.queue.states() if each.state in (JobState.FAILED, JobState.BACKOFF)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("KeyError: 'amount'", "KeyError: 'vat'"),
        ("customer 12 has no address", "customer 9001 has no address"),
        ("timeout of 0x7ffd03 at 10:04", "timeout of 0x1 at 11:59"),
        ("row 5b0c7e0a-93a5-4c3a-9b43-0f2d5a6c1d11 is locked", "row 7b0c7e0a-93a5-4c3a-9b43-0f2d5a6c1d12 is locked"),
        ("refused\n  File a.py, line 1", "refused\n  File b.py, line 2"),
    ],
)
def test_what_varies_from_job_to_job_does_not_make_another_error(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


def test_different_errors_stay_apart() -> None:
    assert fingerprint("ConnectionError: refused") != fingerprint("ConnectionError: reset by peer")


def test_a_group_counts_its_jobs_and_lists_exactly_them() -> None:
    source = QueueSource()
    found = failing(source)
    groups = error_groups(found)

    assert sum(len(each.jobs) for each in groups) == len([each for each in found if each.job.last_error])
    for group in groups:
        listed = {each.job.id for each in found if parse(group.selection).matches(each, source.queue.now)}
        assert listed == {each.job.id for each in group.jobs}
        assert group.first <= group.last


def test_a_job_that_waited_for_others_failed_when_an_operator_failed_it() -> None:
    source = QueueSource()
    with Client(source.queue.url, schema=source.queue.schema) as client:
        job = client.add("mail", after=[failing(source)[0].job.id])
        client.jobs.fail([job.id], reason="not needed")
        failed = client.jobs.get(job.id)

    assert failed is not None
    (group,) = error_groups([FoundJob(failed, JobState.FAILED)])
    assert (group.first, group.last) == (failed.updated_at, failed.updated_at)


def by_the_last_attempt(site: QueueFixture) -> None:
    site.add("mail", max_attempts=1)
    let_it_be_old(site)
    site.run_once({"mail": failing_with(KeyError("amount"))})


def by_giving_up(site: QueueFixture) -> None:
    site.add("mail")
    let_it_be_old(site)
    site.run_once({"mail": failing_with(GiveUp("no address"))})


def by_an_operator(site: QueueFixture) -> None:
    job = site.add("mail")
    let_it_be_old(site)
    site.client.jobs.fail([job], reason="not needed")


def by_another_program(site: QueueFixture) -> None:
    job = site.add("mail")
    let_it_be_old(site)
    site.run("select permanently_fail_jobs(array[%s::bigint], 'not needed')", job)


def by_expiring(site: QueueFixture) -> None:
    site.add("mail", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    let_it_be_old(site)
    site.run_once({"mail": lambda payload: None})


def failing_with(error: Exception) -> Callable[[Any], None]:
    def task(payload: Any) -> None:
        raise error

    return task


def let_it_be_old(site: QueueFixture) -> None:
    """Let the jobs have been added two days ago."""
    old = "now() - interval '2 days'"
    site.run(f"update _private_jobs set created_at = {old}, updated_at = {old}, run_at = {old}")


@pytest.mark.parametrize("fail", [by_the_last_attempt, by_giving_up, by_an_operator, by_another_program, by_expiring])
def test_a_failed_job_has_the_time_of_its_failure_whatever_failed_it(
    site: QueueFixture, fail: Callable[[QueueFixture], None]
) -> None:
    before = site.now()
    fail(site)
    after = site.now()

    (group,) = error_groups(site.client.jobs.list("state:failed").jobs)
    rounding = timedelta(milliseconds=1)
    assert before - rounding <= group.first <= group.last <= after + rounding


@pytest.mark.parametrize("screen", ["overview", "errors"])
def test_a_failure_whose_time_is_unknown_has_no_age(site: QueueFixture, screen: str) -> None:
    site.add("mail")
    site.run_once({"mail": failing_with(RetryAfter(timedelta(days=7), "greylisted"))})

    async def scenario(console: Console) -> None:
        await console.shows("greylisted")
        row = next(line for line in console.text.splitlines() if "greylisted" in line and "mail" in line)
        assert not re.search(r"\d[smhd]\b", row.rpartition("greylisted")[2]), row

    play(scenario, queue_source(site.url), size=(160, 40), screen=screen)


def test_the_limit_of_what_is_read_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_tui.screens.errors.MAX_JOBS", 2)

    async def scenario(console: Console) -> None:
        await console.shows("latest 2 of")

    run(scenario, screen="errors")


def test_a_group_grows_while_jobs_failed_within_a_minute() -> None:
    source = QueueSource()
    (group, *_) = error_groups(failing(source))
    newest = group.jobs[0]
    at = group.last
    assert group.is_growing(at + timedelta(seconds=59))
    assert not group.is_growing(at + timedelta(seconds=61))
    assert replace(group, jobs=(newest,)).first == at


async def shown(console: Console) -> None:
    await console.until(lambda: console.table("#errors").keys)


def test_enter_lists_the_jobs_of_the_group() -> None:
    source = QueueSource()

    async def scenario(console: Console) -> None:
        await shown(console)
        key = console.table("#errors").keys[1]
        await console.press("down", "enter")
        screen = await console.reach("jobs")
        await console.until(lambda: search_of(screen).jobs)
        group = next(each for each in error_groups(failing(source)) if each.key == key)
        assert {each.job.id for each in search_of(screen).jobs} == {each.job.id for each in group.jobs}

    run(scenario, source=source, screen="errors", size=(120, 34))


def test_one_job_is_retried_as_a_probe_and_then_the_rest() -> None:
    source = QueueSource()

    async def scenario(console: Console) -> None:
        await shown(console)
        group = error_groups(failing(source))[0]
        probe, *rest = group.jobs
        await console.press("r")
        (action,) = await console.acted()
        assert (type(action).__name__, action.ids) == ("Retry", [probe.job.id])
        await console.shows(f"probe {probe.job.id} ready")
        source.queue.delete(probe.job.id)
        await console.refresh()
        await console.shows(f"completed: R retries the other {len(rest)}")
        await console.until(lambda: len(console.app.screen.targets()) == len(rest))
        await console.press("R")
        await console.reach("Confirm")
        console.app.screen.query_one("#ok", Button).press()
        assert sorted((await console.acted(2))[1].ids) == sorted(each.job.id for each in rest)

    run(scenario, source=source, screen="errors", size=(120, 34))


def test_a_probe_that_fails_again_says_so() -> None:
    source = QueueSource()

    async def scenario(console: Console) -> None:
        await shown(console)
        probe = error_groups(failing(source))[0].jobs[0].job
        await console.press("r")
        await console.shows(f"probe {probe.id} ready")
        job = source.queue.by_id[probe.id]
        later = source.queue.now.timestamp() + 5
        source.queue.alter(job, attempts=job.max_attempts, last_error="again", _updated_at=later)
        await console.refresh()
        await console.shows(f"probe {probe.id} failed again")

    run(scenario, source=source, screen="errors", size=(120, 34))


def test_the_first_and_last_failure_are_those_that_history_recorded() -> None:
    source = QueueSource()
    source.queue.run("update _private_gw_history set finished_at = finished_at - interval '3 hours'")
    ended = source.history("state:retried,failed").attempts

    plain, recorded = (error_groups(failing(source), attempts) for attempts in ((), ended))

    for before, group in zip(plain, recorded, strict=True):
        times = [
            each.finished_at
            for each in ended
            if each.task == group.task and fingerprint(each.error or "") == group.fingerprint
        ]
        assert group.first == min([before.first, *times])
        assert group.last == max([before.last, *times])
    assert any(before.first > group.first for before, group in zip(plain, recorded, strict=True))
