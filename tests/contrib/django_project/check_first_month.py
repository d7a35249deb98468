"""What a project meets in its first month: backups, rendered templates, tests with commits, receivers that fail."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from typing import Any

import pytest
from api import InvalidTask, task_finished, task_started
from django.core.management import call_command
from django.db import OperationalError, connection
from django.template import engines
from django.test import TransactionTestCase, override_settings
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.utils.timezone import is_aware
from settings import TASKS
from shop import tasks
from shop.models import Order
from worker import run_jobs

from gw_core import Plugin, Skip
from gw_core.contrib.django import client
from gw_core.contrib.django.worker import registry
from gw_core.errors import SchemaMissingError
from gw_core.testing import drain


def options(**values: Any) -> Any:
    changed = {**TASKS["default"], "OPTIONS": {**TASKS["default"]["OPTIONS"], **values}}
    return override_settings(TASKS={"default": changed})


# -- backups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--all",)], ids=["default managers", "base managers"])
def test_dumpdata_writes_the_projects_data(arguments: tuple[str, ...]) -> None:
    Order.objects.create(item="book")
    tasks.noop.enqueue(1)
    output = io.StringIO()
    call_command("dumpdata", *arguments, stdout=output)

    models = {each["model"] for each in json.loads(output.getvalue())}
    assert "shop.order" in models
    assert "graphile_worker.job" not in models


# -- rendered templates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [mark_safe("<b>"), format_html("<b>{}</b>", "&"), engines["django"].from_string("{{ 1 }}").render({})],
    ids=["mark_safe", "format_html", "rendered"],
)
def test_a_text_that_django_marked_as_safe_is_an_argument(text: str) -> None:
    result = tasks.create_order.enqueue(text, lane=text)
    run_jobs()

    order = Order.objects.get()
    assert (order.item, order.lane) == (str(text), str(text))
    assert result.args == [text]


def test_a_text_that_django_marked_as_safe_is_a_return_value() -> None:
    with options(KEEP_RESULTS=timedelta(days=1)):
        result = tasks.return_markup.enqueue()
        run_jobs()
        result.refresh()

    assert result.return_value == ["<b>book</b>", 3, {"<i>": 1.5}]


# -- receivers ---------------------------------------------------------------------------------------------------------


@contextmanager
def failing_receiver(signal: Any) -> Iterator[list[str]]:
    seen: list[str] = []

    def fail(sender: Any, task_result: Any, **_: Any) -> None:
        seen.append(str(task_result.status))
        raise RuntimeError("the metrics server is down")

    signal.connect(fail)
    try:
        yield seen
    finally:
        signal.disconnect(fail)


@pytest.mark.parametrize(("signal", "status"), [(task_finished, "SUCCESSFUL"), (task_started, "RUNNING")])
def test_a_receiver_that_raises_fails_no_task_and_is_logged(
    signal: Any, status: str, jobs: Any, caplog: pytest.LogCaptureFixture
) -> None:
    tasks.create_order.enqueue("book")
    with failing_receiver(signal) as seen, caplog.at_level(logging.ERROR):
        result = run_jobs()

    assert (result.completed, result.failed) == (1, 0)
    assert seen == [status]
    assert Order.objects.count() == 1
    assert jobs() == []
    assert "the metrics server is down" in caplog.text


def test_a_receiver_that_raises_after_a_failure_keeps_the_tasks_own_error(jobs: Any) -> None:
    tasks.fail_until.using(max_attempts=1).enqueue(9)
    with failing_receiver(task_finished) as seen:
        run_jobs()

    assert seen == ["FAILED"]
    with connection.cursor() as cursor:
        cursor.execute("select last_error from graphile_worker.jobs")
        assert "RuntimeError: attempt 1" in cursor.fetchone()[0]


# -- plugins -----------------------------------------------------------------------------------------------------------


class SkipEverything(Plugin):
    """Skips every job."""

    def before_add(self, addition: Any) -> Any:
        return Skip("not today")


def test_a_job_that_a_plugin_skips_is_an_invalid_task(jobs: Any) -> None:
    with options(PLUGINS=["check_first_month:SkipEverything"]), pytest.raises(InvalidTask, match="not today"):
        tasks.create_order.enqueue("book")

    assert jobs() == []


# -- what the database reports -----------------------------------------------------------------------------------------


def test_an_error_of_the_database_is_one_of_djangos(jobs: Any) -> None:
    tasks.noop.enqueue(1)
    assert connection.connection is not None
    os.close(connection.connection.fileno())
    with pytest.raises(OperationalError):
        tasks.noop.enqueue(2)
    connection.close_if_unusable_or_obsolete()
    tasks.noop.enqueue(3)

    assert [job["payload"]["args"] for job in jobs()] == [[1], [3]]


def test_a_missing_schema_is_reported_with_the_command_of_django() -> None:
    with options(SCHEMA="nowhere"), pytest.raises(SchemaMissingError, match=r"manage\.py migrate"):
        tasks.noop.enqueue(1)


# -- times -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_tz", [True, False])
def test_the_times_of_a_task_are_of_one_kind(use_tz: bool) -> None:
    with options(KEEP_RESULTS=timedelta(days=1)), override_settings(USE_TZ=use_tz), caught_results() as seen:
        result = tasks.noop.enqueue(1)
        run_jobs()
        enqueued = copy(result)
        result.refresh()

    times = [
        getattr(each, name)
        for each in (*seen, enqueued, result)
        for name in ("enqueued_at", "started_at", "finished_at", "last_attempted_at")
    ]
    assert {is_aware(each) for each in times if each is not None} == {use_tz}
    assert abs(result.finished_at - result.enqueued_at) < timedelta(minutes=5)


@contextmanager
def caught_results() -> Iterator[list[Any]]:
    found: list[Any] = []

    def keep(sender: Any, task_result: Any, **_: Any) -> None:
        found.append(task_result)

    task_finished.connect(keep)
    try:
        yield found
    finally:
        task_finished.disconnect(keep)


# -- tests with commits ------------------------------------------------------------------------------------------------


class Drained(TransactionTestCase):
    """The default `CONN_MAX_AGE` closes a connection after each request, and a test's tasks run on its own."""

    def test_tasks_that_use_the_database_are_drained(self) -> None:
        assert connection.settings_dict["CONN_MAX_AGE"] == 0
        for item in ("book", "pen"):
            tasks.create_order.enqueue(item)
        result = drain(connection, tasks=registry())

        assert len(result.completed) == 2
        assert list(Order.objects.values_list("item", flat=True)) == ["book", "pen"]

    def test_a_task_that_fails_is_drained(self) -> None:
        tasks.fail_in_the_database.enqueue()
        tasks.create_order.enqueue("book")
        result = drain(connection, tasks=registry(), raises=False)

        assert (len(result.completed), len(result.failed)) == (1, 1)
        assert Order.objects.count() == 1

    def test_the_connection_is_closed_at_the_next_request_as_before(self) -> None:
        tasks.create_order.enqueue("book")
        drain(connection, tasks=registry())
        connection.close_if_unusable_or_obsolete()

        assert connection.connection is None


class LeavesNoJobs(TransactionTestCase):
    """Django empties the tables after such a test; the queue is emptied with them."""

    def test_one_task_is_enqueued(self) -> None:
        tasks.noop.enqueue(1)
        assert client().jobs.count().jobs == 1

    test_one_task_is_enqueued_again = test_one_task_is_enqueued
