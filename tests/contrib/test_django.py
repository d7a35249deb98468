"""The contract of Django's tasks, the command, the migration and the admin page, in a Django project of their own.

Django is set up once for each process, so the project runs in a pytest of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("django")
if sys.version_info < (3, 12):
    pytest.importorskip("django_tasks")

pytestmark = pytest.mark.timeout(900)

PROJECT = Path(__file__).with_name("django_project")


FILES = sorted(path.name for path in PROJECT.glob("check_*.py"))
# The other files run with the defaults of Django.
KEEPING_CONNECTIONS = {
    "for ever": {"TEST_CONN_MAX_AGE": "null"},
    "for a minute": {"TEST_CONN_MAX_AGE": "60"},
    "in a pool": {"TEST_POOL": '{"min_size": 1, "max_size": 2}'},
}


def test_django(empty_database_url: str) -> None:
    run_project(empty_database_url, *FILES)


@pytest.mark.slow
@pytest.mark.parametrize("settings", KEEPING_CONNECTIONS.values(), ids=KEEPING_CONNECTIONS)
def test_connections_of_django_are_kept(settings: dict[str, str], empty_database_url: str) -> None:
    run_project(empty_database_url, "check_connections.py", **settings)


@pytest.mark.slow
def test_django_tasks_drain_at_four_fifths_of_the_speed_of_plain_tasks(empty_database_url: str) -> None:
    run_project(empty_database_url, "measure_drain.py")


def run_project(database_url: str, *files: str, **variables: str) -> None:
    environment = {**os.environ, "DATABASE_URL": database_url, "PYTHONPATH": str(PROJECT), **variables}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:django",
            "--confcutdir",
            ".",
            *files,
        ],
        cwd=PROJECT,
        env=environment,
        text=True,
        capture_output=True,
        timeout=800,
    )

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
