"""What the guide to tasks shows works as written."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.task_builders import LogRecorder, a_context, a_job, attempt, write, write_program

from gw_core.execution.process_pool import PROCESSES
from gw_core.front_ends import Completed, Failed, LoadedTasks, Returned, load_app, load_folder

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "writing-tasks.md"
BLOCK = re.compile(r"^```(?:python|sh)\n((?:#![^\n]*\n)?# (\S+)\n.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with every file the guide shows."""
    for text, name in BLOCK.findall(GUIDE.read_text()):
        (write_program if name.endswith(".sh") else write)(tmp_path / name, text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("shop_tasks", None)


@pytest.fixture
def tasks(project: Path) -> LoadedTasks:
    return load_folder(project / "tasks", strict=True)


def test_every_file_of_the_guide_loads(tasks: LoadedTasks) -> None:
    assert tasks.notices == ()
    assert set(tasks.registry.identifiers) == {
        "charge",
        "crawl",
        "fetch",
        "hello",
        "invoice",
        "invoice/pdf",
        "mail/send",
        "notify_all",
        "render",
        "resize",
        "rollup",
        "unsubscribe",
        "welcome",
    }
    assert [identifier for identifier, _, _ in tasks.registry.crontab_sources] == ["rollup"]


def test_the_application_of_the_guide_loads(project: Path) -> None:
    assert load_app("shop_tasks:registry").identifiers == ("orders/cancel", "orders/confirm")


@pytest.mark.parametrize(
    ("identifier", "payload", "outcome"),
    [
        ("hello", {"name": "Bobby Tables"}, Completed),
        ("mail/send", {"to": "home"}, Completed),
        ("welcome", {"to": " Home "}, Completed),
        ("invoice", {"number": 7, "due": "2026-01-31"}, Completed),
        ("invoice", {"number": "seven", "due": "2026-01-31"}, Failed),
        ("crawl", {"pages": ["/"]}, Completed),
        ("charge", {"answer": "declined"}, Failed),
        ("notify_all", ["a@b", "c"], Failed),
        ("resize", {"width": 100}, Completed),
    ],
)
def test_the_tasks_of_the_guide_end_as_it_says(
    tasks: LoadedTasks, identifier: str, payload: object, outcome: type[object]
) -> None:
    task, job = tasks.registry.get(identifier), a_job(payload)
    assert task is not None

    assert type(attempt(task, job)) is outcome


def test_the_refusal_of_a_payload_reads_as_the_guide_says(tasks: LoadedTasks) -> None:
    task, job = tasks.registry.get("invoice"), a_job({"number": "7", "due": "2026-01-31"})
    assert task is not None

    outcome = attempt(task, job)

    assert isinstance(outcome, Failed)
    assert outcome.permanent
    assert outcome.message.removeprefix("PayloadError: ").partition(" (not retried")[0] in GUIDE.read_text()


def test_the_long_task_of_the_guide_stops_when_asked(tasks: LoadedTasks) -> None:
    task, job = tasks.registry.get("crawl"), a_job({"pages": ["/"]})
    assert task is not None
    context = a_context(job)
    context.should_stop.set()

    assert isinstance(attempt(task, context=context), Returned)


def test_the_first_task_of_the_guide_greets(tasks: LoadedTasks) -> None:
    task, job, log = tasks.registry.get("hello"), a_job({"name": "Bobby Tables"}), LogRecorder()
    assert task is not None

    attempt(task, job, log=log)

    assert log.of("info") == ["Hello, Bobby Tables"]


def test_the_isolated_task_of_the_guide_runs_in_a_process(tasks: LoadedTasks) -> None:
    task, job, log = tasks.registry.get("render"), a_job({"page": "/"}), LogRecorder()
    assert task is not None

    assert isinstance(attempt(task, job, log=log), Completed)
    assert (log.of("info"), task.isolation, task.timeout) == (["rendering /"], "process", timedelta(seconds=60))
    PROCESSES.end_idle()
