"""Set Django up, install everything by its migrations, and empty the tables for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"

import django
import pytest
from django.core.management import call_command
from django.db import connection

django.setup()


@pytest.fixture(scope="session", autouse=True)
def _migrated() -> None:
    call_command("migrate", verbosity=0)


@pytest.fixture(autouse=True)
def _empty(_migrated: None) -> Iterator[None]:
    yield
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("truncate shop_order, graphile_worker._private_jobs, graphile_worker._private_job_queues")
    connection.close()


@pytest.fixture
def jobs() -> Any:
    """Read the jobs that are committed, through a session of its own."""
    import psycopg
    from psycopg.rows import dict_row

    statement = """
        select jobs.id, tasks.identifier as task, payload, priority, max_attempts, attempts, run_at, key, flags,
               queue_name
          from graphile_worker._private_jobs as jobs
          join graphile_worker._private_tasks as tasks on tasks.id = jobs.task_id
          left join graphile_worker._private_job_queues as queues on queues.id = jobs.job_queue_id
         order by jobs.id
    """

    def read() -> list[dict[str, Any]]:
        with psycopg.connect(os.environ["DATABASE_URL"], row_factory=dict_row) as session:
            return session.execute(statement).fetchall()

    return read
