"""Make the recording that `gw tui --demo` plays, from a queue on a PostgreSQL of its own.

Run it as `PYTHONPATH=tests python docs/make_demo.py`, for example when what a screen asks has changed.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from support.console_queue import TASKS, WORKERS
from support.console_source import QueueSource, own_server

from gw_core import Client, JobSpec, JobState
from gw_core.front_ends import HistoryState, NameKind
from gw_tui.app import ConsoleApp
from gw_tui.data.recording import DEMO, RecordedLine, RecordingHead
from gw_tui.data.source import ClientSource, DataSource, Query
from gw_tui.rules.options import Options
from gw_tui.screens.job import JobQuery

SECONDS: Final = 120
PAGES_EVERY: Final = 10
"""In seconds; a snapshot is recorded every second."""
JOBS_EVERY: Final = 60

WAITING: Final = 4
"""This many jobs wait for another one."""

VISITS: Final = (
    *((screen, "") for screen in ("overview", "queues", "workers", "cron", "locks", "tasks", "errors", "history")),
    *(("jobs", text) for text in ("", *(f"state:{each}" for each in JobState), *(f"task:{each}" for each in TASKS))),
    *(("jobs", f"state:running worker:{worker}") for worker in WORKERS),
    *(("history", f"state:{each}") for each in HistoryState),
)
"""Every screen, and the filters that lead from one to another."""


T = TypeVar("T")


class RecordingSource(DataSource):
    """Answers as another source does, and keeps the answers that differ from the ones before."""

    def __init__(self, source: ClientSource, path: Path, clock: Callable[[], float]) -> None:
        self.info = source.info
        self._source, self._path, self._clock = source, path, clock
        self._latest: dict[str, bytes] = {}
        head = RecordingHead(datetime.now(UTC), self.info.where, self.info.schema)
        self._lines: list[RecordingHead | RecordedLine] = [head]

    def answer(self, key: str, query: Callable[[ClientSource], T]) -> T:
        answer = self._source.answer(key, query)
        encoded = msgspec.json.encode(answer)
        if self._latest.get(key) != encoded:
            self._latest[key] = encoded
            self._lines.append(RecordedLine(round(self._clock(), 3), key, msgspec.Raw(encoded)))
        return answer

    def close(self) -> None:
        """Write the recording."""
        self._source.close()
        self._path.write_bytes(gzip.compress(b"\n".join(msgspec.json.encode(each) for each in self._lines), mtime=0))


class Seconds:
    """A clock that is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def queries_of(source: QueueSource) -> list[Query]:
    """Return what the screens ask."""
    found = []
    app = ConsoleApp(source, Options(period=60.0), clock=Seconds())
    async with app.run_test(size=(160, 45)) as pilot:
        for screen, text in VISITS:
            app.visit(screen, text)
            await pilot.pause(0.2)
            query = app.front.current_query() if app.front is not None else None
            found += [query] if query is not None and query not in found else []
    return found


def pages_of(source: RecordingSource, queries: list[Query]) -> Iterator[Any]:
    """Ask everything but the snapshot and single jobs."""
    for query in queries:
        yield query.ask(source)
    for kind in (NameKind.TASKS, NameKind.QUEUES, NameKind.WORKERS):
        yield source.names(kind)


def add_the_rest(source: QueueSource) -> None:
    """Add what the tests of the console do without: jobs that wait for others, and workers that report their tasks."""
    later = [job for job, each in source.queue.by_id.items() if each.run_at > source.clock.now]
    with Client(source.queue.url, schema=source.queue.schema) as client:
        for first in later[:WAITING]:
            client.add(JobSpec(task="reports/weekly", payload={"rows": first}, after=[first]))
    known = json.dumps({"tasks": TASKS})
    source.queue.run("update _private_gw_workers set metadata = coalesce(metadata, '{}') || %s::jsonb", known)


def record(queries: list[Query], path: Path) -> None:
    """Record two minutes of the queue."""
    source, clock = QueueSource(), Seconds()
    add_the_rest(source)
    recorder = RecordingSource(source, path, clock)
    for second in range(SECONDS + 1):
        clock.now = float(second)
        recorder.snapshot()
        if second % PAGES_EVERY == 0:
            list(pages_of(recorder, queries))
        if second % JOBS_EVERY == 0:
            for job in source.queue.by_id:
                JobQuery(job).ask(recorder)
        source.clock.advance(1)
    recorder.close()


def main() -> None:
    """Make the recording again."""
    DEMO.unlink(missing_ok=True)
    with own_server():
        record(asyncio.run(queries_of(QueueSource())), DEMO)
    DEMO.chmod(0o644)


if __name__ == "__main__":
    main()
