from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from time import sleep
from typing import Any

import psycopg
from api import IS_DJANGO_6_0, task
from asgiref.sync import sync_to_async
from django.core.cache import caches
from django.db import connection, transaction
from django.utils import timezone, translation
from django.utils.safestring import mark_safe

from gw_core import GiveUp, Snooze, cron
from gw_core.contrib.django import options
from shop.models import Order


class Number(int):
    """A number of a class of its own, as libraries have them."""


class Price(float):
    """A price of a class of its own."""


@task
def create_order(item: str, *, lane: str = "") -> int:
    return Order.objects.create(item=item, lane=lane).pk


@task
async def create_order_async(item: str) -> None:
    await sync_to_async(Order.objects.create)(item=item)


@task(takes_context=True)
def create_with_context(context: Any, item: str) -> None:
    job = context.job_context.job
    Order.objects.create(item=f"{item} {context.task_result.id} {job.id}", attempt=context.attempt)


@task(takes_context=True)
def fail_until(context: Any, attempt: int) -> None:
    if context.attempt < attempt:
        raise RuntimeError(f"attempt {context.attempt}")


@options(retry={PermissionError: GiveUp, ConnectionError: 3600})
@task
def fail_with(error: str) -> None:
    raise {"denied": PermissionError, "lost": ConnectionError}[error](error)


@task
def give_up() -> None:
    raise GiveUp("hopeless")


@task(takes_context=True)
def snooze_once(context: Any) -> None:
    if not Order.objects.exists():
        Order.objects.create(item="snoozed")
        raise Snooze(0)


@task(takes_context=True)
def end_with_the_worker(context: Any) -> None:
    if not Order.objects.exists():
        Order.objects.create(item="begun")
        while not context.job_context.is_stopping:
            context.job_context.should_stop.wait(0.01)
        context.job_context.checkpoint()


@options(timeout=0.05)
@task(takes_context=True)
def return_too_late(context: Any) -> int:
    context.job_context.should_stop.wait(60)
    return 7


@task
def return_object() -> object:
    return object()


@task
def return_markup() -> object:
    return [mark_safe("<b>book</b>"), Number(3), {mark_safe("<i>"): Price(1.5)}]


@task
def fail_in_the_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select 1 / 0")


@task
def end_own_connection() -> None:
    """Let the server end this thread's connection after the run, as a restart or a firewall does."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
    connection.connection.close()


@task
def note_backend() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        Order.objects.create(item=str(cursor.fetchone()[0]))


@task
def end_other_sessions() -> None:
    """End every session of the project but those of the worker, as a restart of the server does."""
    end = (
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and application_name not like 'gw%'"
    )
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as session:
        while session.execute(end).rowcount:
            sleep(0.01)


@task
def enqueue_and_roll_back() -> None:
    with suppress(RuntimeError), transaction.atomic():
        note_backend.enqueue()
        raise RuntimeError("undo")
    with transaction.atomic():
        note_backend.enqueue()


@task
def which_process() -> None:
    Order.objects.create(item=str(os.getpid()))


@task
def noop(number: int) -> None:
    pass


# So rarely that no worker of another test adds a job of these.
@task
@cron("0 3 29 2 *", tz="Europe/Vienna", payload={"args": ["leap day"]})
def leap_day(item: str) -> None:
    Order.objects.create(item=item)


@cron("0 4 29 2 *", id="leap-lane")
@task(queue_name="slow")
def leap_lane() -> None:
    Order.objects.create(item="leap lane")


def with_options() -> None:
    pass


OPTIONS: dict[str, Any] = {"max_attempts": 3, "serial_queue": "ledger", "flags": ["heavy"]}
# In Django 6.0 `@task` takes no options of a backend.
with_options = task(with_options).using(**OPTIONS) if IS_DJANGO_6_0 else task(**OPTIONS)(with_options)


@task(takes_context=True)
def wait_for_stop(context: Any) -> None:
    Order.objects.create(item="running")
    assert context.job_context.should_stop.wait(100)


@task(takes_context=True)
@options(timeout=timedelta(milliseconds=100), max_attempts=1)
def run_too_long(context: Any) -> None:
    Order.objects.create(item="running")
    context.job_context.should_stop.wait(100)


@options(isolation="process")
@task
def in_a_process_of_its_own() -> None:
    Order.objects.create(item=str(os.getpid()))


@options(limit=2, serial_queue="reports", max_attempts=4)
@task
def limited(number: int) -> int:
    return number


@task
def activate(zone: str, language: str) -> None:
    Order.objects.create(item=timezone.get_current_timezone_name(), lane=translation.get_language())
    timezone.activate(zone)
    translation.activate(language)


@task
def use_cache() -> None:
    cache: Any = caches["default"]
    cache.uses = getattr(cache, "uses", 0) + 1
    Order.objects.create(item=str(cache.uses))


@task
def return_too_much() -> str:
    return "x" * 2_000_000


@task(takes_context=True)
def count_in_steps(context: Any, succeeds_at: int) -> None:
    context.job_context.step("<count>", lambda: ["counted", 7])
    with context.job_context.step("rows") as step:
        step.save(context.attempt)
        if context.attempt < succeeds_at:
            raise RuntimeError("not yet")
