"""Watching the task folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.task_builders import DEADLINE, write
from support.waiting import wait_until

from gw_core import Events, TaskRegistry
from gw_core.front_ends import TaskLoadError, TasksReloaded, load_folder
from gw_core.tasks.reloader import TaskWatcher

TIMEOUT = timedelta(seconds=DEADLINE)
GOOD = "def run(payload): ...\n"


class Watched:
    """A folder with one task, its watcher, and what the watcher handed over and reported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write(folder / "mail.py", GOOD)
        self.registries: list[TaskRegistry] = []
        self.reloads: list[TasksReloaded] = []
        self.crashes: list[BaseException] = []
        events = Events()
        events.on(TasksReloaded, self.reloads.append)
        self.watcher = TaskWatcher(load_folder(folder), self.registries.append, events)
        self.watcher.on_crash = lambda name, error: self.crashes.append(error)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    path = list(sys.path)
    watched = Watched(tmp_path / "tasks")
    yield watched
    assert watched.watcher.stop(TIMEOUT)
    assert watched.crashes == []
    sys.path[:] = path


def test_a_reload_hands_over_a_new_registry_and_reports_it(watched: Watched) -> None:
    write(watched.folder / "more.py", GOOD)

    assert watched.watcher.reload()

    assert [each.identifiers for each in watched.registries] == [("mail", "more")]
    assert [(each.tasks, each.errors) for each in watched.reloads] == [(("mail", "more"), ())]


def test_without_a_change_nothing_is_handed_over(watched: Watched) -> None:
    assert not watched.watcher.reload()
    assert watched.registries == []
    assert watched.reloads == []


def test_a_file_that_breaks_is_reported_and_keeps_its_task(watched: Watched) -> None:
    before = watched.watcher.loaded.registry.get("mail")
    write(watched.folder / "mail.py", "1 / 0\n")

    watched.watcher.reload()

    assert watched.registries[-1].get("mail") is before
    (error,) = watched.reloads[-1].errors
    assert "ZeroDivisionError" in error


def test_a_change_is_seen_while_the_watcher_runs(watched: Watched) -> None:
    watched.watcher.start()

    write(watched.folder / "more.py", GOOD)
    wait_until(lambda: "more" in watched.watcher.loaded.registry, deadline_seconds=DEADLINE, what="the new task")
    (watched.folder / "mail.py").unlink()
    wait_until(lambda: "mail" not in watched.watcher.loaded.registry, deadline_seconds=DEADLINE, what="the loss")

    assert watched.registries[-1].identifiers == ("more",)


def test_what_changed_before_the_watch_began_is_seen_as_well(watched: Watched) -> None:
    write(watched.folder / "more.py", GOOD)

    watched.watcher.start()

    wait_until(lambda: watched.registries, deadline_seconds=DEADLINE, what="the first reload")
    assert watched.registries[0].identifiers == ("mail", "more")


def test_the_watcher_ends_soon_when_nothing_changes(watched: Watched) -> None:
    watched.watcher.start()

    assert watched.watcher.stop(TIMEOUT)


def test_without_the_watching_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    write(tmp_path / "mail.py", GOOD)

    with pytest.raises(TaskLoadError, match=r"graphile-worker\[watch\]"):
        TaskWatcher(load_folder(tmp_path), lambda registry: None, Events())
