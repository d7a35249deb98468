"""Workers that `manage.py gw` starts: reloading, the log, the environment of tasks, broken modules."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.test import override_settings
from settings import GRAPHILE
from shop.models import Order

from gw_core.contrib.django import client
from gw_core.contrib.django.management.commands.gw import reloading

FOLDER = Path(__file__).parent

TASKS = """
import os, subprocess, sys
from api import task
from shop.models import Order

@task
def note():
    Order.objects.create(item="first version")

@task
def note_environment():
    command = [sys.executable, "-c", "import os; print(os.environ)"]
    found = subprocess.run(command, capture_output=True, text=True).stdout
    Order.objects.create(item="environment", lane=str("GW_CONNECTION" in found))

@task
def fail():
    raise RuntimeError("no")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project whose tasks a test may change."""
    for name in ("manage.py", "settings.py", "api.py", "urls.py", "extra_tasks.py", "shop"):
        copy: Any = shutil.copytree if (FOLDER / name).is_dir() else shutil.copy
        copy(FOLDER / name, tmp_path / name)
    (tmp_path / "shop" / "tasks.py").write_text(TASKS)
    settings = (tmp_path / "settings.py").read_text()
    (tmp_path / "settings.py").write_text(
        settings.replace('"ALIASES": {"shop.old.create_order": "shop.tasks.create_order"}', "")
    )
    return tmp_path


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `manage.py` in the copy."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **variables: str) -> subprocess.Popen[str]:
        paths = [str(project), *(path for path in os.environ["PYTHONPATH"].split(os.pathsep) if path != str(FOLDER))]
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=project,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", **variables},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=60)


def wait_for_order(item: str, changed: Path | None = None) -> None:
    """Enqueue the task until its present version has run; the reloader may begin to watch after the first change."""
    deadline, touched = time.monotonic() + 100, time.monotonic()
    while not Order.objects.filter(item=item).exists():
        assert time.monotonic() < deadline, list(Order.objects.values_list("item", flat=True))
        client().add("shop.tasks.note", {"args": [], "kwargs": {}}, job_key="note")
        if changed is not None and time.monotonic() > touched + 15:
            changed.touch()
            touched = time.monotonic()
        time.sleep(0.2)


def workers() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from graphile_worker._private_gw_workers")
        return int(cursor.fetchone()[0])


@pytest.mark.timeout(300)
def test_a_worker_starts_again_when_the_code_of_a_task_changes(project: Path, start: Any) -> None:
    assert [reloading(given) for given in (["dev"], ["run", "--reload", "--once"], ["run"], ["list", "--reload"])] == [
        ["dev"], ["run", "--once"], [], [],
    ]  # fmt: skip
    process = start("gw", "run", "--reload")
    wait_for_order("first version")
    tasks = project / "shop" / "tasks.py"
    tasks.write_text(TASKS.replace("first version", "a second version"))
    wait_for_order("a second version", changed=tasks)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)

    assert output.count("Stopped: received SIGTERM") >= 2, output
    assert workers() == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("to_all", [False, True], ids=["the command", "all processes"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_stops_a_reloading_worker_gracefully(start: Any, number: signal.Signals, to_all: bool) -> None:
    process = start("gw", "dev")
    wait_for_order("first version")

    (os.killpg if to_all else os.kill)(process.pid, number)
    output, _ = process.communicate(timeout=60)

    assert "Stopped: received SIG" in output
    assert "Traceback" not in output
    assert workers() == 0


def test_each_event_is_one_line_of_the_log_and_the_connection_is_not_in_the_environment_of_tasks(
    start: Any, project: Path
) -> None:
    with (project / "settings.py").open("a") as settings:
        settings.write("\nDEBUG = True\n")
    for name in ("note", "note_environment"):
        client().add(f"shop.tasks.{name}", {"args": [], "kwargs": {}})
    client().add("shop.tasks.fail", {"args": [], "kwargs": {}}, max_attempts=1)
    process = start("gw", "run", "--once", "--processes", "2", DATABASE_URL=os.environ["DATABASE_URL"])
    output, _ = process.communicate(timeout=100)

    assert process.returncode == 0, output
    assert Order.objects.get(item="environment").lane == "False"
    assert output.count("shop.tasks.note (") + output.count("(shop.tasks.note,") == 1, output
    assert len([line for line in output.splitlines() if "(shop.tasks.fail," in line]) == 1, output
    assert "state=" not in output


def test_the_log_of_tasks_that_a_project_configures_is_written(start: Any, project: Path) -> None:
    with (project / "settings.py").open("a") as settings:
        names = "'django.tasks': {'level': 'INFO'}, 'django_tasks': {'level': 'INFO'}"
        settings.write(f"\nLOGGING = {{'version': 1, 'disable_existing_loggers': False, 'loggers': {{{names}}}}}\n")
    client().add("shop.tasks.note", {"args": [], "kwargs": {}})
    output, _ = start("gw", "run", "--once").communicate(timeout=100)

    assert "state=SUCCESSFUL" in output


# -- what `check` finds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module", "No module named 'no_such_module'"),
        ("@cron('61 * * * *')\n@task\ndef nightly(): ...", "61"),
        ("@task\n@cron('0 4 * * *', tz='Nowhere/Land')\ndef nightly(): ...", "Nowhere/Land"),
        ("@cron('0 4 * * *')\n@cron('0 5 * * *')\n@task\ndef nightly(): ...", "must be unique"),
        ("@options(timeout=-1)\n@task\ndef nightly(): ...", "timeout"),
        ("@options(retry={'OSError': 60})\n@task\ndef nightly(): ...", "'OSError'"),
        ("@options(limit={'most': 1})\n@task\ndef nightly(): ...", "most"),
        ("@options(max_attempts=0)\n@task\ndef nightly(): ...", "max attempts is 0"),
    ],
)
def test_a_task_that_a_worker_could_not_run_is_found_by_check(
    source: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"wrong_{abs(hash(source))}"
    imports = "from api import task\nfrom gw_core import cron\nfrom gw_core.contrib.django import options\n"
    (tmp_path / f"{name}.py").write_text(imports + source)
    monkeypatch.syspath_prepend(tmp_path)
    from gw_core.contrib.django.task import recorded

    before = dict(recorded)
    try:
        changed = override_settings(TASKS={"default": {"BACKEND": GRAPHILE, "OPTIONS": {"MODULES": [name]}}})
        with changed, pytest.raises(SystemCheckError, match="E006") as caught:
            call_command("check")
    finally:
        recorded.clear()
        recorded.update(before)
    assert message in str(caught.value)
