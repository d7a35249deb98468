"""What a program asks of the queue beside `enqueue`: the client, many tasks at a time, the options of tasks."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from api import InvalidTask, task
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.test import override_settings
from settings import TASKS
from shop import tasks
from shop.models import Order
from worker import URL, run_jobs

from gw_core import Runner, WorkerSettings, run_once
from gw_core.contrib.django import client, enqueue_many, job_spec, options, using
from gw_core.contrib.django.task import recorded
from gw_core.contrib.django.worker import registry
from gw_core.errors import InvalidInputError, JobFailedError

RESULTS = {
    "default": {**TASKS["default"], "OPTIONS": {**TASKS["default"]["OPTIONS"], "KEEP_RESULTS": timedelta(days=1)}}
}
IMMEDIATE = (
    "django.tasks.backends.immediate.ImmediateBackend"
    if "django.tasks" in sys.modules
    else "django_tasks.backends.immediate.ImmediateBackend"
)
DUMMY = IMMEDIATE.replace("immediate.Immediate", "dummy.Dummy")


# -- the client --------------------------------------------------------------------------------------------------------


def test_what_the_client_changes_belongs_to_the_transaction(jobs: Any) -> None:
    with suppress(RuntimeError), transaction.atomic():
        client().add("shop.tasks.noop", {"args": [1]})
        client().add_many([job_spec(tasks.noop, 2)])
        client().groups.add([job_spec(tasks.noop, 3)], then=job_spec(tasks.noop, 4))
        client().pauses.pause("task:shop.tasks.noop")
        raise RuntimeError("undo")

    assert jobs() == []
    assert client().pauses.list() == []


def test_the_client_sees_what_the_transaction_has_added() -> None:
    with transaction.atomic():
        result = tasks.noop.enqueue(1)
        assert client().jobs.count("task:shop.tasks.noop").jobs == 1
        assert client().jobs.get(int(result.id)) is not None
        assert client().jobs.retry([int(result.id)]).skipped
        client().jobs.complete([int(result.id)])
        assert client().jobs.get(int(result.id)) is None
        transaction.set_rollback(True)


def test_a_call_in_a_broken_transaction_names_the_broken_transaction() -> None:
    order = Order.objects.create(item="book")
    with transaction.atomic():
        with suppress(IntegrityError):
            Order.objects.create(pk=order.pk)
        with pytest.raises(transaction.TransactionManagementError, match="until the end of the 'atomic' block"):
            client().add("shop.tasks.noop", {})


def test_without_a_transaction_everything_is_committed_immediately(jobs: Any) -> None:
    client().add(job_spec(tasks.noop, 1))

    assert [job["payload"] for job in jobs()] == [{"args": [1], "kwargs": {}}]


@override_settings(TASKS=RESULTS)
def test_a_result_is_awaited_and_a_running_task_cancelled() -> None:
    added = tasks.limited.enqueue(7)
    running = tasks.wait_for_stop.enqueue()
    runner = Runner(URL, tasks=registry(), migrate=False, handle_signals=False)
    runner.start()
    try:
        with client() as queue:
            assert queue.result(int(added.id), timeout=60) == 7
            deadline = time.monotonic() + 60
            while not Order.objects.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            [cancelled] = queue.jobs.cancel([int(running.id)], by="a test", timeout=60)
            assert str(cancelled.result) == "cancelled"
            with pytest.raises(JobFailedError):
                queue.result(int(running.id), timeout=60)
    finally:
        runner.stop()
        runner.wait()


def test_a_client_that_is_dropped_leaves_no_session() -> None:
    sessions = "select count(*) from pg_stat_activity where application_name = 'gw' and datname = current_database()"
    client().jobs.list()
    deadline = time.monotonic() + 60
    with connection.cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute(sessions)
            if cursor.fetchone() == (0,):
                return
    raise AssertionError("the session of a dropped client is open")


def test_a_group_runs_its_last_task_after_the_others(jobs: Any) -> None:
    with transaction.atomic():
        client().groups.add(
            [job_spec(tasks.create_order, "one"), job_spec(tasks.create_order, "two", lane="slow")],
            then=job_spec(tasks.create_order, "all"),
        )
    run_jobs()

    assert [each.item for each in Order.objects.order_by("pk")][-1] == "all"
    assert Order.objects.count() == 3


def elsewhere(**options: Any) -> dict[str, Any]:
    """The backends of the project, and one with other options."""
    return {**TASKS, "other": {**TASKS["default"], "OPTIONS": {**TASKS["default"]["OPTIONS"], **options}}}


ADDING: dict[str, Any] = {
    "add": lambda spec: client().add(spec),
    "try_add": lambda spec: client().try_add(spec),
    "add_many": lambda spec: client().add_many([job_spec(tasks.noop, 1), spec]),
    "a member": lambda spec: client().groups.add([spec], then=job_spec(tasks.noop, 1)),
    "the last of a group": lambda spec: client().groups.add([job_spec(tasks.noop, 1)], then=spec),
    "a changed job": lambda spec: client().add(replace(spec, priority=3)),
}


@pytest.mark.parametrize("add", ADDING.values(), ids=ADDING)
def test_a_client_rejects_a_job_for_the_queue_of_another_backend(jobs: Any, add: Any) -> None:
    message = r"is for the queue of TASKS\['other'\].*add it with client\('other'\)"
    with override_settings(TASKS=elsewhere(SCHEMA="elsewhere")), pytest.raises(InvalidInputError, match=message):
        add(job_spec(using(tasks.noop, backend="other"), 1))

    assert jobs() == []


def test_a_client_adds_a_job_of_another_backend_of_the_same_queue(jobs: Any) -> None:
    with override_settings(TASKS=elsewhere(MAX_ATTEMPTS=7)):
        client().add(job_spec(using(tasks.noop, backend="other"), 1))

    assert [job["max_attempts"] for job in jobs()] == [7]


def test_a_backend_of_another_package_has_no_client() -> None:
    with (
        override_settings(TASKS={"default": {"BACKEND": DUMMY}}),
        pytest.raises(InvalidInputError, match="DummyBackend"),
    ):
        client()


# -- many tasks --------------------------------------------------------------------------------------------------------


def test_many_tasks_are_enqueued_in_few_statements(jobs: Any) -> None:
    with connection.execute_wrapper(statements := Statements()):
        ids = enqueue_many(tasks.create_order, [("book",), {"item": "pen", "lane": "slow"}] * 100)
    assert len(statements.seen) < 10

    assert sorted(str(job["id"]) for job in jobs()) == sorted(ids)
    assert {"args": [], "kwargs": {"item": "pen", "lane": "slow"}} in [job["payload"] for job in jobs()]


class Statements:
    """Counts what is sent to the server."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, execute: Any, sql: str, *arguments: Any) -> Any:
        self.seen.append(sql)
        return execute(sql, *arguments)


def test_many_tasks_are_enqueued_with_the_transaction(jobs: Any) -> None:
    with suppress(RuntimeError), transaction.atomic():
        enqueue_many(using(tasks.noop, priority=5), [[n] for n in range(10)])
        raise RuntimeError("undo")

    assert jobs() == []


def test_a_call_that_is_no_sequence_of_arguments_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="not str"):
        enqueue_many(tasks.create_order, ["book"])


def test_another_backend_enqueues_them_one_by_one() -> None:
    with override_settings(TASKS={"default": {"BACKEND": DUMMY}}):
        made = task(tasks.noop.func)
        assert len(enqueue_many(made, [[1], [2]])) == 2
        assert [each.args for each in made.get_backend().results] == [[1], [2]]


# -- options -----------------------------------------------------------------------------------------------------------


def test_options_stand_above_and_below_task_and_using_changes_them(jobs: Any) -> None:
    tasks.limited.enqueue(1)
    using(tasks.limited, max_attempts=9, job_key="once", priority=3).enqueue(2)
    using(tasks.limited, job_key="once").enqueue(3)

    found = {job["payload"]["args"][0]: job for job in jobs()}
    assert set(found) == {1, 3}
    assert found[1]["max_attempts"] == 4
    assert found[1]["queue_name"] == "reports"
    assert found[3]["key"] == "once"


@pytest.mark.parametrize("backend", [IMMEDIATE, DUMMY])
def test_other_backends_ignore_the_options(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with override_settings(TASKS={"default": {"BACKEND": backend}}):
        made = options(max_attempts=3, timeout=5, limit=1)(task(double))
        monkeypatch.setitem(globals(), "double", made)  # Django 6.1 imports it from there
        result = using(made, job_key="daily").enqueue(7)

    assert result.args == [7]


def double(number: int) -> int:
    """A function of these tests alone, because options stay on it."""
    return 2 * number


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="no option 'retries'"):
        options(retries=3)  # type: ignore[call-arg]


def test_an_option_of_the_task_is_none_of_a_job() -> None:
    with pytest.raises(TypeError, match="timeout is an option of the task"):
        tasks.noop.using(timeout=3)


def test_a_wrong_option_is_an_invalid_task() -> None:
    made = options(max_attempts=0)(task(spoiled))
    try:
        with pytest.raises(InvalidTask, match=r"check_queue\.spoiled: max attempts is 0"):
            made.enqueue()
    finally:
        del recorded["check_queue.spoiled"]


def spoiled() -> None:
    """Not used elsewhere, because options stay on a function."""


def test_a_run_ends_at_the_timeout_of_its_task() -> None:
    tasks.run_too_long.enqueue()
    result = run_jobs()

    assert (result.completed, result.failed) == (0, 1)
    assert Order.objects.count() == 1


def test_a_task_runs_in_a_process_of_its_own() -> None:
    tasks.in_a_process_of_its_own.enqueue()
    tasks.which_process.enqueue()
    assert run_jobs().completed == 2

    assert len(set(Order.objects.values_list("item", flat=True))) == 2


CACHE = Path(__file__).parents[3] / ".mypy_cache" / "django"
TYPED = """
from datetime import timedelta
from django_tasks import task
from gw_core import cron
from gw_core.contrib.django import client, enqueue_many, job_spec, options, using

@cron("0 3 * * *")
@options(max_attempts=3, timeout=timedelta(minutes=5), isolation="process", limit=5)
@task
def above(order: int) -> str:
    return str(order)

@task
@options(serial_queue="mail", flags=["heavy"])
@cron("0 4 * * *")
def below(order: int) -> str:
    return str(order)

reveal_type(above)
using(above, job_key="daily", priority=3).enqueue(7)
below.enqueue("seven")
using(below, job_kee="daily")
enqueue_many(above, [[1], {"order": 2}])
client().groups.add([job_spec(above, 1)], then=job_spec(below, 2))
"""


@pytest.mark.skipif("django.tasks" in sys.modules, reason="the tasks of Django 6 have no types")
def test_mypy_accepts_the_options(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "typed.py").write_text(TYPED)
    options = ["--strict", "--ignore-missing-imports", f"--cache-dir={CACHE}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "typed.py"], cwd=tmp_path, text=True, capture_output=True, timeout=300
    )

    errors = [line.partition(": ")[0::2] for line in done.stdout.splitlines() if ": error: " in line]
    assert [place for place, _ in errors] == ["typed.py:21", "typed.py:22"], done.stdout
    assert 'Revealed type is "django_tasks.base.Task[[order: int], str]"' in done.stdout.replace("builtins.", "")


# -- what ends with a task ---------------------------------------------------------------------------------------------


def test_a_time_zone_and_a_language_end_with_their_task() -> None:
    tasks.activate.enqueue("Asia/Tokyo", "de")
    tasks.activate.enqueue("Europe/Vienna", "fr")
    run_jobs()

    assert set(Order.objects.values_list("item", "lane")) == {(settings.TIME_ZONE, settings.LANGUAGE_CODE)}


def test_a_cache_stays_open_from_task_to_task() -> None:
    for _ in range(20):
        tasks.use_cache.enqueue()
    run_once(URL, tasks=registry(), migrate=False, handle_signals=False, settings=WorkerSettings(concurrency=1))

    assert sorted(map(int, Order.objects.values_list("item", flat=True))) == list(range(1, 21))


# -- results -----------------------------------------------------------------------------------------------------------


@override_settings(TASKS=RESULTS)
def test_a_result_that_cannot_be_kept_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    result = tasks.return_too_much.enqueue()
    with caplog.at_level(logging.WARNING, logger="graphile_worker"):
        assert run_jobs().completed == 1
    result.refresh()

    assert result.return_value is None
    [record] = [each for each in caplog.records if "the result is not kept" in each.getMessage()]
    assert result.id in record.getMessage()
