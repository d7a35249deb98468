"""The log of completed jobs: single records while these can be read, and a sum of all further ones."""

from __future__ import annotations

import logging
from collections import Counter

from support.queue_fixture import QueueFixture, in_time

from gw_core import JobSpec, TaskRegistry

MANY = 3_000


class Records(logging.Handler):
    """Keeps the records about completed jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[logging.LogRecord] = []
        self.sums: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("Completed task"):
            self.jobs.append(record)
        elif record.msg.startswith("Completed"):
            self.sums.append(record)


def run_many(site: QueueFixture, level: int) -> Records:
    """Run many jobs of two tasks, and return the records about them."""
    registry = TaskRegistry()
    for name in ("often", "seldom"):
        registry.task(name)(lambda payload: None)
    tasks = ["seldom" if number % 10 == 0 else "often" for number in range(MANY)]
    site.client.add_many([JobSpec(task=task) for task in tasks])
    runner, _, log = site.runner(registry)
    records = Records()
    log.logger.handlers[:] = [records]
    log.logger.setLevel(level)
    in_time(runner.run_once)
    return records


def test_the_first_jobs_of_a_second_have_records_and_the_others_a_sum(site: QueueFixture) -> None:
    records = run_many(site, logging.INFO)

    counted: Counter[str] = Counter(record.task for record in records.jobs)  # type: ignore[attr-defined] # from extra
    for record in records.sums:
        counted.update(record.tasks)  # type: ignore[attr-defined]
        assert record.completed == sum(record.tasks.values())  # type: ignore[attr-defined]
    assert counted == {"often": MANY * 9 // 10, "seldom": MANY // 10}
    assert 100 <= len(records.jobs) < MANY
    words = records.sums[0].getMessage()
    assert words.startswith("Completed ")
    assert " more within a second: often " in words


def test_each_job_has_a_record_at_the_level_debug(site: QueueFixture) -> None:
    records = run_many(site, logging.DEBUG)

    assert len({record.job_id for record in records.jobs}) == MANY  # type: ignore[attr-defined]
    assert records.sums == []


def test_nothing_is_logged_above_the_level_info(site: QueueFixture) -> None:
    records = run_many(site, logging.WARNING)

    assert (records.jobs, records.sums) == ([], [])
