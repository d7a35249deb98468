"""The admin page of jobs."""

from __future__ import annotations

import html
import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models import TextField
from django.test import Client as Browser, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from shop import tasks
from shop.models import Order
from worker import URL, make_due, run_jobs

from gw_core import Client, Job, JobContext, JobSpec, Runner, Selection, TaskRegistry, run_once
from gw_core.contrib.django import client, enqueue_many, job_spec
from gw_core.contrib.django.models import Attempt as AdminAttempt, Job as AdminJob, Schedule as AdminSchedule
from gw_core.contrib.django.worker import registry
from gw_core.front_ends import UNSAFE_TEXT

JOBS = "admin:graphile_worker_job_changelist"
JOB = "admin:graphile_worker_job_change"
ATTEMPTS = "admin:graphile_worker_attempt_changelist"
SCHEDULES = "admin:graphile_worker_schedule_changelist"
ACTIONS = {"retry": "retry", "cancel": "cancel", "complete": "complete", "reschedule": "reschedule", "pause": "pause"}
MAX_STATEMENTS = 20
"""For a page of the admin, with the user's session and permissions."""


def browser(*permissions: str) -> Browser:
    """Return a browser of a new staff member with these permissions."""
    user = User.objects.create(username=f"user{User.objects.count()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    made = Browser()
    made.force_login(user)
    return made


def page(response: Any) -> str:
    assert response.status_code == 200
    return str(response.content.decode())


def act(seen: Browser, action: str, *ids: object, url: str = "", **values: str) -> str:
    """Send the form of the list and return the page that follows."""
    data = {"action": action, "_selected_action": ids, **values}
    return page(seen.post(url or reverse(JOBS), data, follow=True))


def failed_job() -> str:
    result = tasks.fail_until.using(max_attempts=1).enqueue(9)
    run_jobs()
    return str(result.id)


def shown_ids(shown: str) -> list[str]:
    return re.findall(r'name="_selected_action" value="(\d+)"', shown)


@pytest.fixture(autouse=True)
def _no_entries() -> None:
    LogEntry.objects.all().delete()


def entries() -> list[str]:
    """Return the messages in the log of the admin."""
    return [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]


# -- the list ----------------------------------------------------------------------------------------------------------


def test_the_list_is_filtered_by_state_task_and_queue() -> None:
    failed = failed_job()
    waiting = tasks.create_order.enqueue("<b>book</b>").id
    queued = tasks.limited.enqueue(1).id
    later = tasks.noop.using(run_after=timezone.now() + timedelta(days=1)).enqueue(1).id
    seen = browser("view_job", "retry_job")

    def ids(**query: str) -> set[str]:
        return set(shown_ids(page(seen.get(reverse(JOBS), query))))

    assert ids() == {failed, waiting, queued, later}
    assert ids(state="failed") == {failed}
    assert ids(state="ready") == {waiting, queued}
    assert ids(state="scheduled") == {later}
    assert ids(state="running") == ids(state="backoff") == set()
    assert ids(task="shop.tasks.create_order") == {waiting}
    assert ids(queue_name="reports") == {queued}
    assert ids(q=failed) == {failed}
    assert ids(q="shop.tasks.n") == {later}
    assert ids(q="reports") == {queued}
    assert ids(created_at__gte="2100-01-01 00:00:00+00:00") == set()


def test_the_list_shows_the_error_and_how_many_jobs_are_in_each_state() -> None:
    failed_job()
    shown = page(browser("view_job").get(reverse(JOBS)))

    assert "attempt 1" in shown
    assert "failed (1)" in shown
    assert "ready (0)" in shown


def test_jobs_are_found_by_the_date_when_they_were_added() -> None:
    waiting = tasks.noop.enqueue(1).id
    seen = browser("view_job", "retry_job")
    today = timezone.localtime()
    month = f"created_at__month={today.month}&created_at__year={today.year}"
    day = f"created_at__day={today.day}&{month}"

    assert f"?{day}" in links(page(seen.get(reverse(JOBS))))
    assert shown_ids(page(seen.get(f"{reverse(JOBS)}?{day}"))) == [waiting]
    assert f"?{day}" in links(page(seen.get(f"{reverse(JOBS)}?{month}")))
    assert f"?{month}" in links(page(seen.get(f"{reverse(JOBS)}?created_at__year={today.year}")))
    other = page(seen.get(f"{reverse(JOBS)}?created_at__year={today.year - 1}"))
    assert shown_ids(other) == []
    assert month not in html.unescape(other)


@pytest.mark.parametrize("run_at", ["infinity", "-infinity", "20000-01-01", "0044-03-15 BC", "9999-12-31 23:59+00"])
def test_a_job_of_any_time_is_shown(run_at: str) -> None:
    result = tasks.noop.enqueue(1)
    with connection.cursor() as cursor:
        cursor.execute("update graphile_worker._private_jobs set run_at = %s::text::timestamptz", [run_at])
    seen = browser("view_job", "retry_job")
    job = AdminJob.objects.get()

    assert [each.pk for each in AdminJob.objects.in_state(job.state)] == [int(result.id)]
    assert shown_ids(page(seen.get(reverse(JOBS)))) == [result.id]
    assert f"<td>{job.state}</td>" in page(seen.get(reverse(JOB, args=[result.id])))


def test_a_list_that_is_longer_than_a_page_can_be_continued() -> None:
    enqueue_many(tasks.noop, [[number] for number in range(60)])
    seen = browser("view_job", "retry_job")
    pages = [shown_ids(page(seen.get(reverse(JOBS), {"p": number}))) for number in ("1", "2")]

    assert [len(each) for each in pages] == [50, 10]
    assert len({*pages[0], *pages[1]}) == 60


def test_no_page_costs_more_because_the_queue_is_longer() -> None:
    seen = browser("view_job", "retry_job", "view_attempt", "view_schedule")
    failed = failed_job()
    urls = [
        reverse(JOBS),
        *(
            f"{reverse(JOBS)}?{query}"
            for query in ("state=failed", "state=ready", "q=shop", "task=shop.tasks.noop", "p=3")
        ),
        reverse(JOB, args=[failed]),
        reverse(ATTEMPTS),
        reverse(SCHEDULES),
    ]
    with override_settings(TASKS=with_results()):
        fill(300)
        run_jobs()
        fill(300)
        few = [statements(seen, url) for url in urls]
        fill(20_000)
        many = [statements(seen, url) for url in urls]

    assert many == few
    assert max(many) <= MAX_STATEMENTS, dict(zip(urls, many, strict=True))


def fill(count: int) -> None:
    """Add many jobs of `tasks.noop` with one statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from graphile_worker.add_jobs(array(select ('shop.tasks.noop', %s, null, null, null, "
            "null, null, null)::graphile_worker.job_spec from generate_series(1, %s)))",
            ['{"args": [1], "kwargs": {}}', count],
        )


def statements(seen: Browser, url: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        page(seen.get(url))
    return len(captured)


def test_pages_and_counts_of_the_list_are_read_by_an_index() -> None:
    fill(20_000)
    with connection.cursor() as cursor:
        cursor.execute("vacuum analyze graphile_worker._private_jobs")
    seen = browser("view_job")
    assert "10000+ results" in page(seen.get(reverse(JOBS)))
    with CaptureQueriesContext(connection) as captured:
        for query in ("", "p=3", "state=failed", "state=running"):
            page(seen.get(f"{reverse(JOBS)}?{query}"))

    read = [each["sql"] for each in captured.captured_queries if '"jobs"' in each["sql"]]
    assert len(read) == 16
    with connection.cursor() as cursor:
        for statement in read:
            cursor.execute(f"explain {statement}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Seq Scan on _private_jobs" not in plan, plan


# -- one job -----------------------------------------------------------------------------------------------------------


def test_one_job_is_shown_as_text() -> None:
    result = tasks.create_order.using(job_key="daily").enqueue("<b>book</b>")
    shown = page(browser("view_job").get(reverse(JOB, args=[result.id])))

    assert "&lt;b&gt;book&lt;/b&gt;" in shown
    assert "<b>book</b>" not in shown
    assert "<td>shop.tasks.create_order</td>" in shown
    assert "<td>daily</td>" in shown
    assert "<td>ready</td>" in shown


def test_a_failed_job_is_shown_with_the_tracebacks_of_its_attempts() -> None:
    with override_settings(TASKS=with_results()):
        failed = failed_job()
        shown = page(browser("view_job").get(reverse(JOB, args=[failed])))

    assert "<td>failed</td>" in shown
    assert "Traceback (most recent call last)" in html.unescape(shown)
    assert "RuntimeError: attempt 1" in html.unescape(shown)


def test_a_completed_task_is_found_with_its_result() -> None:
    with override_settings(TASKS=with_results()):
        result = tasks.limited.enqueue(4711)
        run_jobs()
        seen = browser("view_job", "view_attempt")
        found = page(seen.get(reverse(ATTEMPTS), {"state": "completed", "q": "shop.tasks.limited"}))
        (link,) = {link for link in links(found) if re.search(r"/job/\d+/", link)}
        shown = page(seen.get(link))

    assert f"/{result.id}/" in link
    assert "4711" in shown
    assert "completed" in shown


def test_attempts_are_found_by_their_date() -> None:
    with override_settings(TASKS=with_results()):
        tasks.noop.enqueue(1)
        run_jobs()
    seen = browser("view_attempt")
    today = timezone.localtime()
    found = page(seen.get(reverse(ATTEMPTS), {"finished_at__year": today.year, "finished_at__month": today.month}))

    assert f"finished_at__day={today.day}" in html.unescape(found)
    assert "shop.tasks.noop" in found


def test_jobs_that_wait_for_each_other_lead_to_each_other() -> None:
    first = tasks.noop.enqueue(1).id
    last = client().add(replace(job_spec(tasks.noop, 2), after=[int(first)]))
    assert isinstance(last, Job)
    seen = browser("view_job", "retry_job")

    assert shown_ids(page(seen.get(reverse(JOBS), {"state": "waiting"}))) == [str(last.id)]
    assert shown_ids(page(seen.get(reverse(JOBS), {"state": "scheduled"}))) == []
    of_last, of_first = (page(seen.get(reverse(JOB, args=[each]))) for each in (last.id, first))
    assert "<td>waiting</td>" in of_last
    assert reverse(JOB, args=[first]) in links(of_last)
    assert reverse(JOB, args=[last.id]) in links(of_first)


def test_the_steps_of_a_job_are_shown_while_it_waits_and_after_its_end() -> None:
    with override_settings(TASKS=with_results()):
        result = tasks.count_in_steps.enqueue(2)
        run_jobs()
        seen = browser("view_job")
        waiting = page(seen.get(reverse(JOB, args=[result.id])))
        make_due()
        run_jobs()
        ended = page(seen.get(reverse(JOB, args=[result.id])))

    for shown in (waiting, ended):
        assert "<td>&lt;count&gt;</td>" in shown
        assert "<td>rows</td>" in shown
        assert "[&quot;counted&quot;,7]" in shown
    assert "<td>backoff</td>" in waiting
    assert "not in the queue any more" in ended


def test_a_job_that_does_not_exist_is_not_found() -> None:
    assert browser("view_job").get(reverse(JOB, args=[1 << 40])).status_code == 404


# -- actions -----------------------------------------------------------------------------------------------------------


def test_retry_runs_failed_jobs_again(jobs: Any) -> None:
    failed = failed_job()
    shown = act(browser("view_job", "retry_job"), "retry", failed)

    assert "Retried: 1." in shown
    assert [job["attempts"] for job in jobs()] == [0]
    assert entries() == ["Retried in the admin."]


def test_what_is_not_retried_is_reported() -> None:
    waiting = tasks.noop.enqueue(1).id
    assert "Retried: 0. Skipped: 1 " in act(browser("view_job", "retry_job"), "retry", waiting)
    assert entries() == []


def test_cancel_ends_a_running_job_and_fails_a_waiting_one(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.contrib.django.admin.CANCEL_TIMEOUT", timedelta(minutes=1))
    running = tasks.wait_for_stop.enqueue()
    runner = Runner(URL, tasks=registry(), migrate=False, handle_signals=False)
    runner.start()
    try:
        deadline = time.monotonic() + 60
        while not Order.objects.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        waiting = tasks.noop.using(run_after=timezone.now() + timedelta(days=1)).enqueue(1)
        seen = browser("view_job", "cancel_job")
        question = act(seen, "cancel", running.id, waiting.id)
        assert "Cancel these jobs?" in question
        shown = act(seen, "cancel", running.id, waiting.id, confirmed="yes")
    finally:
        runner.stop()
        runner.wait()

    assert "Result: 2 cancelled." in shown
    assert [job["attempts"] == job["max_attempts"] for job in jobs()] == [True, True]
    assert len(entries()) == 2


def test_complete_asks_and_deletes(jobs: Any) -> None:
    waiting = tasks.noop.enqueue(1).id
    seen = browser("view_job", "complete_job")
    question = act(seen, "complete", waiting)
    assert f"shop.tasks.noop {waiting} (ready)" in question
    assert len(jobs()) == 1

    assert "Completed: 1." in act(seen, "complete", waiting, confirmed="yes")
    assert jobs() == []


def test_all_jobs_of_a_filter_are_completed_together(jobs: Any) -> None:
    fill(2_100)
    other = tasks.create_order.enqueue("book").id
    seen = browser("view_job", "complete_job")
    url = f"{reverse(JOBS)}?task=shop.tasks.noop"
    first = shown_ids(page(seen.get(url)))[0]
    shown = act(seen, "complete", first, url=url, confirmed="yes", select_across="1")

    assert "Completed: 2100." in shown
    assert [str(job["id"]) for job in jobs()] == [other]


def test_reschedule_changes_the_time(jobs: Any) -> None:
    waiting = tasks.noop.enqueue(1).id
    seen = browser("view_job", "reschedule_job")
    assert "Rescheduled: 1." in act(seen, "reschedule", waiting, run_at="2100-01-01 12:00")
    [job] = jobs()
    assert job["run_at"].year == 2100

    assert "not a time" in act(seen, "reschedule", waiting, run_at="tomorrow")
    act(seen, "reschedule", waiting)
    [job] = jobs()
    assert job["run_at"].year < 2100
    assert entries() == ["Rescheduled in the admin."] * 2


@pytest.mark.parametrize(
    ("times", "index"), [(("2100-01-01", ""), 0), (("", "2100-01-01"), 1), (("2101-01-01", "2100-01-01"), 1)]
)
def test_the_time_of_either_form_of_the_list_counts(times: tuple[str, str], index: int, jobs: Any) -> None:
    waiting = tasks.noop.enqueue(1).id
    data = {"action": ["reschedule"] * 2, "_selected_action": [waiting], "run_at": times, "index": index}
    browser("view_job", "reschedule_job").post(reverse(JOBS), data)

    assert [job["run_at"].year for job in jobs()] == [2100]


def test_pause_and_resume_the_tasks_of_jobs() -> None:
    waiting = tasks.noop.enqueue(1).id
    seen = browser("view_job", "pause_job")
    assert "Paused: shop.tasks.noop." in act(seen, "pause", waiting)
    [pause] = client().pauses.list()
    assert str(pause.target) == "task:shop.tasks.noop"
    assert pause.by.startswith("user")

    assert "Resumed: shop.tasks.noop." in act(seen, "resume", waiting)
    assert client().pauses.list() == []
    assert entries() == ["Paused the task in the admin.", "Resumed the task in the admin."]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_needs_its_permission(action: str, jobs: Any) -> None:
    failed = failed_job()
    seen = browser("view_job", *(f"{other}_job" for other in ACTIONS.values() if other != action))

    assert f'value="{action}"' not in page(seen.get(reverse(JOBS)))
    assert f'value="{action}"' not in page(seen.get(reverse(JOB, args=[failed])))
    before = jobs()
    act(seen, action, failed, confirmed="yes")
    assert jobs() == before
    assert client().pauses.list() == []
    assert entries() == []


def test_the_pages_lead_back_as_those_of_django() -> None:
    """Django writes this navigation in another way since 6.1."""
    seen = browser("view_job", "view_schedule")
    own = page(seen.get(reverse(JOBS)))
    made = '<ol class="breadcrumbs">' if '<ol class="breadcrumbs">' in own else '<div class="breadcrumbs">'
    for url in (reverse(JOB, args=[tasks.noop.enqueue(1).id]), reverse(SCHEDULES)):
        shown = page(seen.get(url))
        assert made in shown
        assert {reverse("admin:index"), reverse("admin:app_list", args=["graphile_worker"])} <= set(links(shown))


def test_the_page_of_a_job_has_its_actions() -> None:
    failed = failed_job()
    seen = browser("view_job", *(f"{action}_job" for action in ACTIONS.values()))
    shown = page(seen.get(reverse(JOB, args=[failed])))

    assert set(re.findall(r'<button class="button" name="action" value="(\w+)"', shown)) == {*ACTIONS, "resume"}
    assert "Retried: 1." in act(seen, "retry", failed)


@pytest.mark.parametrize("name", [JOBS, ATTEMPTS, SCHEDULES])
def test_lists_are_shown_to_those_with_permission_only(name: str) -> None:
    assert browser().get(reverse(name)).status_code == 403


@pytest.mark.parametrize("name", ["add/", "1/delete/"])
def test_there_are_no_other_pages(name: str) -> None:
    assert browser("view_job").get(reverse(JOBS) + name).status_code in (302, 403, 404)


# -- schedules ---------------------------------------------------------------------------------------------------------


def test_schedules_are_shown_and_run_now(jobs: Any) -> None:
    seen = browser("view_schedule", "run_schedule")
    shown = page(seen.get(reverse(SCHEDULES)))
    assert "0 3 29 2 *" in shown
    assert "slow/shop.tasks.leap_lane" in shown

    assert "Added job" in page(seen.post(reverse(SCHEDULES), {"run": "shop.tasks.leap_day"}, follow=True))
    run_jobs()
    assert Order.objects.get().item == "leap day"
    assert entries()[0].startswith("Added job")


def test_to_run_a_schedule_needs_its_permission(jobs: Any) -> None:
    seen = browser("view_schedule")

    assert "Run now" not in page(seen.get(reverse(SCHEDULES)))
    assert seen.post(reverse(SCHEDULES), {"run": "shop.tasks.leap_day"}).status_code == 403
    assert jobs() == []


def test_a_schedule_that_does_not_exist_is_reported() -> None:
    seen = browser("view_schedule", "run_schedule")
    assert "not one of the project" in page(seen.post(reverse(SCHEDULES), {"run": "nothing"}, follow=True))


# -- text of others ----------------------------------------------------------------------------------------------------

STEERING = "\u202e\x9b\x07"
"""Reverses the direction of writing, begins a control sequence, and rings."""
ESCAPED = r"\\u202e\\x9b\\(?:x07|u0007)"
"""The pattern of these as escapes; JSON has one of its own."""
PLAIN_TEXTS = {AdminAttempt: {"state", "error_type"}}
"""Columns that only gw fills, with words of its own and names of Python's classes."""


def odd(name: str) -> str:
    return f"{name}{STEERING}"


@pytest.fixture
def odd_jobs() -> Iterator[list[int]]:
    """Jobs whose every text steers a terminal: a failed one, an ended one, and one of another program's worker.

    Other programs write ids of workers and schedules, so statements place those.
    """

    def fail(payload: object, context: JobContext) -> None:
        context.step(odd("step"), lambda: odd("value"))
        raise ValueError(odd("raised"))

    registry = TaskRegistry()
    registry.task(odd("fail"), keep=timedelta(days=1), keep_payload=True)(fail)
    registry.task(odd("end"), keep=timedelta(days=1), result=True)(lambda payload: odd("result"))
    payload = {odd("field"): odd("text")}
    added = [
        client().add(
            JobSpec(
                task=odd(task),
                payload=payload,
                queue_name=odd("queue"),
                job_key=odd(task),
                max_attempts=1,
                flags=[odd("flag")],
            )
        )
        for task in ("fail", "end", "locked")
    ]
    run_once(URL, tasks=registry, migrate=False, handle_signals=False)
    with connection.cursor() as cursor:
        locked = "update graphile_worker._private_jobs set locked_at = now(), locked_by = %s where key = %s"
        cursor.execute(locked, [odd("worker"), odd("locked")])
        cursor.execute("update graphile_worker._private_gw_history set worker_id = %s", [odd("worker")])
        cursor.execute("insert into graphile_worker._private_known_crontabs values (%s, now(), null)", [odd("cron")])
    yield [job.id for job in added if isinstance(job, Job)]
    client().pauses.resume(*(f"task:{odd(task)}" for task in ("fail", "end", "locked")))
    with connection.cursor() as cursor:
        cursor.execute("delete from graphile_worker._private_known_crontabs where identifier = %s", [odd("cron")])
        cursor.execute("delete from graphile_worker._private_gw_history")


def test_no_text_of_a_queue_steers_what_shows_the_admin(odd_jobs: list[int]) -> None:
    seen = browser(
        *Permission.objects.filter(content_type__app_label="graphile_worker").values_list("codename", flat=True)
    )
    waiting = [str(client().add(JobSpec(task=odd("fail"))).id)]  # type: ignore[union-attr]
    pages = {
        "jobs": page(seen.get(reverse(JOBS))),
        "attempts": page(seen.get(reverse(ATTEMPTS))),
        "schedules": page(seen.get(reverse(SCHEDULES))),
        **{f"job {number}": page(seen.get(reverse(JOB, args=[number]))) for number in odd_jobs},
        "question": act(seen, "complete", *waiting),
        "message": act(seen, "pause", *waiting),
        "log": page(seen.get(reverse("admin:index"))),
        "log of a job": page(seen.get(reverse("admin:graphile_worker_job_history", args=odd_jobs[:1]))),
    }
    shown = {name: html.unescape(text) for name, text in pages.items()}
    everything = "".join(shown.values())
    texts = ("fail", "end", "locked", "step", "value", "raised", "result", "field", "text", "queue", "flag", "worker")

    for model in (AdminJob, AdminAttempt, AdminSchedule):
        assert texts_that_are_plain(model) == PLAIN_TEXTS.get(model, set())
    assert [name for name, text in shown.items() if {*re.findall(UNSAFE_TEXT, text)} - {"\n", "\t"}] == []
    assert [name for name in (*texts, "cron") if not re.search(name + ESCAPED, everything)] == []
    assert re.search(rf"Paused: fail{ESCAPED}\.", shown["message"])


def texts_that_are_plain(model: Any) -> set[str]:
    """Return the columns for which the jobs above prove nothing; a new column belongs into them."""
    fields = [getattr(each, "field", None) for each in vars(model).values()]
    names = [each.name for each in fields if isinstance(each, TextField)]
    return {name for name in names if not model.objects.filter(**{f"{name}__contains": STEERING}).exists()}


# -- queries -----------------------------------------------------------------------------------------------------------


def test_programs_query_the_jobs_of_any_backend(second_queue: Client) -> None:
    failed_job()
    tasks.noop.enqueue(1)
    second_queue.add("shop.tasks.create_order")

    assert AdminJob.objects.count() == 2
    assert AdminJob.objects.in_state("failed").get().task == "shop.tasks.fail_until"
    assert [job.state for job in AdminJob.objects.order_by("id")] == ["failed", "ready"]
    assert AdminJob.objects.of_backend("second").get().task == "shop.tasks.create_order"


# -- several queues ----------------------------------------------------------------------------------------------------

FIRST, SECOND = 0, 1
"""The numbers of the schemas `graphile_worker` and `second` in the admin, which sorts them."""


@pytest.fixture
def second_queue(settings_of_tasks: dict[str, Any]) -> Iterator[Client]:
    """A client for the queue of a second backend, in the schema `second`."""
    second = {**settings_of_tasks["default"], "OPTIONS": {"SCHEMA": "second"}}
    with override_settings(TASKS={**settings_of_tasks, "second": second}), Client(URL, schema="second") as client:
        client.migrate()
        yield client
        client.jobs.complete(Selection())


def with_results() -> dict[str, Any]:
    options = {**settings.TASKS["default"]["OPTIONS"], "KEEP_RESULTS": timedelta(days=1)}
    return {"default": {**settings.TASKS["default"], "OPTIONS": options}}


@pytest.fixture
def settings_of_tasks() -> dict[str, Any]:
    return dict(settings.TASKS)


def links(shown: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(r'href="([^"]*)"', shown)]


def test_each_queue_leads_to_the_others(second_queue: Client) -> None:
    for name, permission in ((JOBS, "view_job"), (ATTEMPTS, "view_attempt"), (SCHEDULES, "view_schedule")):
        assert f"?queue={SECOND}" in links(page(browser(permission).get(reverse(name))))
        assert f"?queue={FIRST}" in links(page(browser(permission).get(reverse(name), {"queue": SECOND})))


def test_links_stay_in_their_queue(second_queue: Client) -> None:
    second_queue.add_many([JobSpec(task="shop.tasks.noop", payload={"second": number}) for number in range(60)])
    seen = browser("view_job", "retry_job")
    shown = page(seen.get(reverse(JOBS), {"queue": SECOND}))

    to_jobs = [link for link in links(shown) if re.search(r"/job/\d+/", link)]
    more = next(link for link in links(shown) if "p=2" in link)
    job = page(seen.get(to_jobs[0]))
    back = next(link for link in links(job) if link.startswith(f"{reverse(JOBS)}?"))

    assert len(to_jobs) == 50
    assert "second" in job
    assert len(shown_ids(page(seen.get(back)))) == 50
    assert len(shown_ids(page(seen.get(reverse(JOBS) + more)))) == 10
    assert f'name="queue" value="{SECOND}"' in shown  # of the form that searches


def test_an_action_stays_in_its_queue(second_queue: Client) -> None:
    job = second_queue.add("shop.tasks.noop")
    assert isinstance(job, Job)
    second_queue.jobs.fail([job.id], reason="no")
    response = browser("view_job", "retry_job").post(
        f"{reverse(JOBS)}?queue={SECOND}", {"action": "retry", "_selected_action": [job.id]}, follow=True
    )

    assert "Retried: 1." in page(response)
    assert response.redirect_chain[-1][0].endswith(f"?queue={SECOND}")


def test_a_queue_that_cannot_be_read_is_reported() -> None:
    changed = {**settings.TASKS["default"], "OPTIONS": {"SCHEMA": "elsewhere"}}
    with override_settings(TASKS={"default": changed}):
        seen = browser("view_job", "retry_job", "view_schedule")
        assert "elsewhere" in page(seen.get(reverse(JOBS)))
        assert "elsewhere" in page(seen.get(reverse("admin:graphile_worker_job_change", args=[1])))
        assert "elsewhere" in page(seen.get(reverse(SCHEDULES)))
        assert "elsewhere" in act(seen, "retry", 1)


# -- whatever a browser sends ------------------------------------------------------------------------------------------

HOSTILE = ["9" * 5_000, str(2**63), "", "\x00", "\ud800", "'; --"]
if os.environ.get("GW_TEST_PROFILE") == "nightly":
    HOSTILE += [str(2**63 - 1), "0", "-1", "x", "٣", "1e3"]


PARAMETERS = {
    JOBS: ("q", "p", "o", "queue", "state", "task", "created_at__gte", "created_at__year", "_changelist_filters"),
    ATTEMPTS: ("q", "state", "finished_at__year"),
    SCHEDULES: ("queue",),
}


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: ascii(value)[:20])
def test_no_value_makes_an_error_of_the_server(value: str) -> None:
    seen = browser(
        *Permission.objects.filter(content_type__app_label="graphile_worker").values_list("codename", flat=True)
    )
    encoded = quote(value, errors="surrogatepass")

    for list_of, names in PARAMETERS.items():
        for name in names:
            assert seen.get(f"{reverse(list_of)}?{name}={encoded}").status_code in (200, 302, 400, 404), name
        for end in ("/", "/change/", "/history/"):
            assert seen.get(f"{reverse(list_of)}{encoded}{end}").status_code in (200, 302, 404)
    for action in ("retry", "cancel", "complete", "reschedule", "pause", value):
        name = quote(action, errors="surrogatepass")
        sent = f"action={name}&_selected_action={encoded}&run_at={encoded}&index={encoded}"
        response = seen.post(reverse(JOBS), sent, content_type="application/x-www-form-urlencoded")
        assert response.status_code in (200, 302)
    sent = f"run={encoded}"
    response = seen.post(reverse(SCHEDULES), sent, content_type="application/x-www-form-urlencoded")
    assert response.status_code == 302
