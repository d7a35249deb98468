"""The programs in examples/ do what their pages describe, on a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.shell import rows

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GW = Path(sys.executable).with_name("gw")

REQUESTS = {
    "fastapi_app": """
from fastapi.testclient import TestClient
from app import app

with TestClient(app) as browser:
    print([browser.post(f"/orders/{item}").status_code for item in ("book", "sold-out")])
""",
    "flask_app": """
from app import app

browser = app.test_client()
print([browser.post(f"/orders/{item}").status_code for item in ("book", "sold-out")])
""",
}


DJANGO_REQUESTS = """
import django

django.setup()
from django.test import Client

print([Client().post(f"/orders/{item}").status_code for item in ("book", "sold-out")])
"""


def run(folder: str, url: str, *command: str | Path) -> str:
    done = subprocess.run(
        command,
        cwd=EXAMPLES / folder,
        env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "settings"},
        text=True,
        capture_output=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("example", REQUESTS)
def test_a_request_adds_its_job_in_its_transaction(example: str, empty_database_url: str) -> None:
    for module in {"fastapi_app": ("fastapi", "asyncpg"), "flask_app": ("flask_sqlalchemy",)}[example]:
        pytest.importorskip(module)
    statuses = run(example, empty_database_url, sys.executable, "-c", REQUESTS[example])

    assert statuses == "[201, 409]\n"
    assert rows(empty_database_url, "select item, receipt from orders") == [("book", None)]
    assert rows(empty_database_url, "select count(*) from graphile_worker._private_jobs") == [(1,)]
    run(example, empty_database_url, GW, "run", "--once", "--tasks", "tasks")
    assert rows(empty_database_url, "select receipt from orders") == [("sent for book",)]


ORDERS_WITH_WORKER = """
import time

from app import app
from fastapi.testclient import TestClient

with TestClient(app) as browser:
    posted = [browser.post(f"/orders/{item}") for item in ("book", "sold-out", "pen")]
    print([each.status_code for each in posted])
    numbers = [each.json()["id"] for each in posted if each.status_code == 201]
    deadline = time.monotonic() + 60
    while not all(browser.get(f"/orders/{number}").json()["receipt"] for number in numbers):
        assert time.monotonic() < deadline, "the worker did not run the jobs"
        time.sleep(0.01)
"""


def test_a_worker_inside_the_application_shares_its_engine(empty_database_url: str) -> None:
    for module in ("fastapi", "asyncpg"):
        pytest.importorskip(module)
    statuses = run("fastapi_worker", empty_database_url, sys.executable, "-c", ORDERS_WITH_WORKER)

    assert statuses == "[201, 409, 201]\n"
    written = rows(empty_database_url, "select item, receipt from orders order by id")
    assert written == [("book", "sent for book"), ("pen", "sent for pen")]
    assert rows(empty_database_url, "select count(*) from graphile_worker._private_jobs") == [(0,)]


ANSWERS_OF_SERVICE = """\
book 200 {"orderId":1,"total":"3.75"}
slow 200 {"orderId":2,"total":"3.75"}
stolen 422 {"detail":"PermissionError: stolen card
True 3 PermissionError: stolen card
['retried', 'completed']
[0, 10, 20]
1 1
{'detail': 'expired'} {'detail': 'unknown'}
True
start stop ['charge', 'mail', 'publish', 'resize']
"""


def test_a_service_that_was_written_from_the_manual(empty_database_url: str) -> None:
    for module in ("fastapi", "asyncpg"):
        pytest.importorskip(module)
    folder = Path(__file__).parent / "fastapi_service"

    assert run(str(folder), empty_database_url, sys.executable, "browse.py") == ANSWERS_OF_SERVICE


def test_the_tests_of_the_application_with_a_worker_pass(empty_database_url: str) -> None:
    for module in ("fastapi", "asyncpg", "anyio"):
        pytest.importorskip(module)
    options = ("-n0", "-p", "no:django", "-p", "no:cacheprovider", "--rootdir", ".", "-c", "/dev/null")
    output = run("fastapi_worker", empty_database_url, sys.executable, "-m", "pytest", *options)

    assert "4 passed" in output


def test_a_django_request_enqueues_its_task_in_its_transaction(empty_database_url: str) -> None:
    pytest.importorskip("django")
    if sys.version_info < (3, 12):
        pytest.importorskip("django_tasks")
    run("django_project", empty_database_url, sys.executable, "manage.py", "migrate", "--verbosity", "0")
    run("django_project", empty_database_url, sys.executable, "manage.py", "makemigrations", "--check")
    statuses = run("django_project", empty_database_url, sys.executable, "-c", DJANGO_REQUESTS)

    assert statuses == "[201, 409]\n"
    assert rows(empty_database_url, "select count(*) from graphile_worker._private_jobs") == [(1,)]
    run("django_project", empty_database_url, sys.executable, "manage.py", "gw", "run", "--once")
    assert rows(empty_database_url, "select receipt from orders") == [("sent for book",)]


def test_the_script_runs_its_job(empty_database_url: str) -> None:
    output = run("script", empty_database_url, sys.executable, "script.py")

    assert output.splitlines()[-2:] == ["Hello, World!", "1 job completed"]
