"""Make the recording that `gw tui --demo` plays, from a queue on a PostgreSQL of its own.

Run it as `PYTHONPATH=tests python docs/make_demo.py`, for example when what a screen asks has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from support.console_queue import TASKS, WORKERS
from support.console_source import QueueSource, own_server

from gw_core import JobState
from gw_core.front_ends import HistoryState, NameKind
from gw_tui.app import ConsoleApp
from gw_tui.data.recording import DEMO, RecordingSource
from gw_tui.data.source import Query
from gw_tui.rules.options import Options
from gw_tui.screens.job import JobQuery

SECONDS: Final = 120
PAGES_EVERY: Final = 10
"""In seconds; a snapshot is recorded every second."""
JOBS_EVERY: Final = 60

VISITS: Final = (
    *((screen, "") for screen in ("overview", "queues", "workers", "cron", "locks", "tasks", "errors", "history")),
    *(("jobs", text) for text in ("", *(f"state:{each}" for each in JobState), *(f"task:{each}" for each in TASKS))),
    *(("jobs", f"state:running worker:{worker}") for worker in WORKERS),
    *(("history", f"state:{each}") for each in HistoryState),
)
"""Every screen, and the filters that lead from one to another."""


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


def record(queries: list[Query], path: Path) -> None:
    """Record two minutes of the queue."""
    source, clock = QueueSource(), Seconds()
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
