"""The admin page of jobs."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client as Browser, override_settings
from django.urls import reverse
from shop import tasks
from shop.models import Order
from worker import URL, run_jobs

from gw_core import Client, Job, JobSpec, Runner, Selection
from gw_core.contrib.django.worker import registry

JOBS = "admin:graphile_worker_job_changelist"


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


def failed_job() -> str:
    result = tasks.fail_until.using(max_attempts=1).enqueue(9)
    run_jobs()
    return str(result.id)


def test_the_list_shows_the_jobs_of_a_selection() -> None:
    failed = failed_job()
    waiting = tasks.create_order.enqueue("<b>book</b>").id
    seen = browser("view_job")

    assert f">{failed}</a>" in page(seen.get(reverse(JOBS)))
    found = page(seen.get(reverse(JOBS), {"q": "state:failed"}))
    assert f">{failed}</a>" in found
    assert f">{waiting}</a>" not in found
    assert "<td>shop.tasks.fail_until</td>" in found
    assert "attempt 1" in found


def test_a_wrong_selection_is_reported_on_the_page() -> None:
    assert "errornote" in page(browser("view_job").get(reverse(JOBS), {"q": "stat:failed"}))


def test_a_list_that_is_longer_than_a_page_can_be_continued() -> None:
    for number in range(60):
        tasks.noop.enqueue(number)
    seen = browser("view_job")
    first = page(seen.get(reverse(JOBS)))
    [link] = re.findall(r'href="([^"]*after=[^"]*)"', first)
    second = page(seen.get(reverse(JOBS) + html.unescape(link)))

    assert [found.count('type="checkbox"') for found in (first, second)] == [50, 10]


def test_one_job_is_shown_as_text() -> None:
    result = tasks.create_order.using(job_key="daily").enqueue("<b>book</b>")
    shown = page(browser("view_job").get(reverse("admin:graphile_worker_job_change", args=[result.id])))

    assert "&lt;b&gt;book&lt;/b&gt;" in shown
    assert "<b>book</b>" not in shown
    assert "<td>shop.tasks.create_order</td>" in shown
    assert "<td>daily</td>" in shown


def test_a_job_that_does_not_exist_is_not_found() -> None:
    assert browser("view_job").get(reverse("admin:graphile_worker_job_change", args=[1 << 40])).status_code == 404


def test_retry_runs_failed_jobs_again(jobs: Any) -> None:
    failed = failed_job()
    response = browser("view_job", "retry_job").post(reverse(JOBS), {"action": "retry", "job": [failed]}, follow=True)

    assert "Retried: 1." in page(response)
    assert [job["attempts"] for job in jobs()] == [0]


def test_cancel_ends_a_running_job(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.contrib.django.admin.CANCEL_TIMEOUT", timedelta(minutes=1))
    result = tasks.wait_for_stop.enqueue()
    runner = Runner(URL, tasks=registry(), migrate=False, handle_signals=False)
    runner.start()
    try:
        deadline = time.monotonic() + 60
        while not Order.objects.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        response = browser("view_job", "cancel_job").post(
            reverse(JOBS), {"action": "cancel", "job": [result.id]}, follow=True
        )
    finally:
        runner.stop()
        runner.wait()

    assert "Result: 1 cancelled." in page(response)
    assert [job["attempts"] == job["max_attempts"] for job in jobs()] == [True]


@pytest.mark.parametrize("action", ["retry", "cancel"])
def test_an_action_needs_its_permission(action: str) -> None:
    seen = browser("view_job")

    assert f'value="{action}"' not in page(seen.get(reverse(JOBS)))
    assert seen.post(reverse(JOBS), {"action": action, "job": ["1"]}).status_code == 403


def test_jobs_are_shown_to_those_with_permission_only() -> None:
    assert browser().get(reverse(JOBS)).status_code == 403


@pytest.mark.parametrize("page", ["add/", "1/delete/", "1/history/"])
def test_there_are_no_other_pages(page: str) -> None:
    assert browser("view_job").get(reverse(JOBS) + page).status_code == 404


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


@pytest.fixture
def settings_of_tasks() -> dict[str, Any]:
    return dict(settings.TASKS)


def links(shown: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(r'href="([^"]*)"', shown)]


def test_each_queue_leads_to_the_others(second_queue: Client) -> None:
    assert f"?queue={SECOND}" in links(page(browser("view_job").get(reverse(JOBS))))
    assert f"?queue={FIRST}" in links(page(browser("view_job").get(reverse(JOBS), {"queue": SECOND})))


def test_links_stay_in_their_queue(second_queue: Client) -> None:
    second_queue.add_many([JobSpec(task="shop.tasks.noop", payload={"second": number}) for number in range(60)])
    seen = browser("view_job")
    shown = page(seen.get(reverse(JOBS), {"queue": SECOND}))

    to_jobs = [link for link in links(shown) if re.search(r"/job/\d+/", link)]
    (more,) = [link for link in links(shown) if "after=" in link]
    job = page(seen.get(to_jobs[0]))
    (back,) = [link for link in links(job) if link.startswith(f"{reverse(JOBS)}?")]

    assert len(to_jobs) == 50
    assert "second" in job
    assert page(seen.get(back)).count('type="checkbox"') == 50
    assert page(seen.get(reverse(JOBS) + more)).count('type="checkbox"') == 10
    assert f'name="queue" value="{SECOND}"' in shown  # of the form that searches


def test_an_action_stays_in_its_queue(second_queue: Client) -> None:
    job = second_queue.add("shop.tasks.noop")
    assert isinstance(job, Job)
    second_queue.jobs.fail([job.id], reason="no")
    response = browser("view_job", "retry_job").post(
        f"{reverse(JOBS)}?queue={SECOND}", {"action": "retry", "job": [job.id]}, follow=True
    )

    assert "Retried: 1." in page(response)
    assert response.redirect_chain[-1][0].endswith(f"?queue={SECOND}")


def test_a_queue_that_cannot_be_read_is_reported() -> None:
    changed = {**settings.TASKS["default"], "OPTIONS": {"SCHEMA": "elsewhere"}}
    with override_settings(TASKS={"default": changed}):
        seen = browser("view_job", "retry_job")
        assert "elsewhere" in page(seen.get(reverse(JOBS)))
        assert "elsewhere" in page(seen.get(reverse("admin:graphile_worker_job_change", args=[1])))
        assert "elsewhere" in page(seen.post(reverse(JOBS), {"action": "retry", "job": ["1"]}, follow=True))


# -- whatever a browser sends ------------------------------------------------------------------------------------------

HOSTILE = ["9" * 5_000, str(2**63), str(2**63 - 1), "0", "-1", "", "x", "\x00", "\ud800", "٣", "1e3", "'; --"]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: ascii(value)[:20])
def test_no_value_makes_an_error_of_the_server(value: str) -> None:
    seen = browser("view_job", "retry_job", "cancel_job")
    encoded = quote(value, errors="surrogatepass")

    for name in ("q", "after", "queue"):
        assert seen.get(f"{reverse(JOBS)}?{name}={encoded}").status_code in (200, 404)
    assert seen.get(f"{reverse(JOBS)}{encoded}/").status_code in (200, 302, 404)
    for action in ("retry", "cancel"):
        sent = f"action={action}&job={encoded}"
        response = seen.post(reverse(JOBS), sent, content_type="application/x-www-form-urlencoded")
        assert response.status_code == 302
