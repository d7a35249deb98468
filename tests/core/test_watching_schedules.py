"""Under `watch`, a `@cron` in a task file is read again when the file changes."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.queue_fixture import EventRecorder, LogRecorder, QueueFixture, RunningWorker, RunRecord, a_registry
from support.waiting import wait_until

from gw_core import Events, Runner
from gw_core.errors import CrontabError
from gw_core.events import PoolStarted
from gw_core.front_ends import CronItemsRejected, TasksReloaded


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[Path]:
    path = list(sys.path)
    (tmp_path / "tasks").mkdir()
    yield tmp_path / "tasks"
    sys.path[:] = path


def write(tasks: Path, marks: str) -> None:
    (tasks / "report.py").write_text(f"from gw_core import cron, task\n{textwrap.dedent(marks)}def run(payload): ...\n")


def crontabs(site: QueueFixture) -> list[str]:
    return [row["identifier"] for row in site.run("select identifier from _private_known_crontabs order by 1")]


@pytest.fixture
def running(site: QueueFixture, tasks: Path) -> Iterator[RunningWorker]:
    write(tasks, "")
    events, log = Events(), LogRecorder()
    runner = Runner(
        site.url, tasks=tasks, watch=True, handle_signals=False, migrate=False, events=events, logger=log.logger
    )
    running = RunningWorker(runner, EventRecorder(events), log)
    running.start()
    yield running
    running.stop()


def test_a_schedule_that_a_task_gets_while_it_is_watched_is_kept(
    site: QueueFixture, tasks: Path, running: RunningWorker
) -> None:
    running.recorded.wait_for(PoolStarted)

    write(tasks, '@cron("0 4 * * *")\n')

    wait_until(lambda: crontabs(site) == ["report"])


def test_a_schedule_that_cannot_be_read_keeps_the_former_ones(
    site: QueueFixture, tasks: Path, running: RunningWorker
) -> None:
    write(tasks, '@cron("0 4 * * *")\n')
    wait_until(lambda: crontabs(site) == ["report"])

    write(tasks, '@cron("0 44 * * *")\n')

    running.recorded.wait_for(CronItemsRejected)
    running.recorded.wait_for(TasksReloaded, count=2)
    assert crontabs(site) == ["report"]


def test_the_name_of_a_file_is_not_the_text_of_a_crontab(site: QueueFixture) -> None:
    with pytest.raises(CrontabError, match=r"for a file, pass Path\('crontab'\)"):
        Runner(site.url, tasks=a_registry({"work": RunRecord()}), crontab="crontab").run_once()


def test_a_file_is_read_to_the_letter_as_the_commands_do(site: QueueFixture, tmp_path: Path) -> None:
    crontab = tmp_path / "crontab"
    crontab.write_bytes(b"* * * * * report\r0 8 * * * report ?id=daily\n")

    with pytest.raises(CrontabError, match=r":1:17: '\\r' stands inside the line"):
        Runner(site.url, tasks=a_registry({"work": RunRecord()}), crontab=crontab).run_once(cron=True)


def test_an_item_must_be_an_item(site: QueueFixture) -> None:
    with pytest.raises(CrontabError, match=r"made by cron_item\(\), not dict"):
        Runner(site.url, tasks=a_registry({"work": RunRecord()}), crontab=[{"task": "report"}]).run_once()  # type: ignore[list-item]
