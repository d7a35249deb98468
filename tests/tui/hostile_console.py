"""A console on a queue whose every text tries to steer the terminal; the texts also go around the cleaning."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from msgspec import structs

from gw_core import Selection
from gw_core.front_ends import FoundJob, QueueSnapshot
from gw_core.operations import JobPage
from gw_tui.data import recording
from gw_tui.main import run
from gw_tui.rules.options import Options
from gw_tui.screens import overview

EVIL = "A\x1b]52;c;aGFja2Vk\x1b\\B\x9b31m\u202eC\x07\x00\x1b[2J[red]x[/red]"


class HostileSource(recording.ReplaySource):
    """Puts the text wherever a text can stand."""

    def snapshot(self) -> QueueSnapshot:
        snapshot = super().snapshot()
        return structs.replace(
            snapshot,
            server=structs.replace(snapshot.server, user=EVIL, host=EVIL, database=EVIL, version=EVIL),
            priorities=[structs.replace(head, oldest_task=EVIL) for head in snapshot.priorities],
            workers=[structs.replace(worker, id=f"{EVIL}{number}") for number, worker in enumerate(snapshot.workers)],
            locked_queues=[structs.replace(queue, name=EVIL, locked_by=EVIL) for queue in snapshot.locked_queues],
            errors=[(EVIL, EVIL)],
        )

    def page(self, wanted: Selection, **more: Any) -> JobPage:
        page = super().page(wanted, **more)
        texts = dict.fromkeys(("task", "queue_name", "job_key", "last_error", "locked_by"), EVIL)
        jobs = tuple(FoundJob(structs.replace(each.job, **texts), each.state) for each in page.jobs)
        return structs.replace(page, jobs=jobs)


class FaultySource(HostileSource):
    """Answers with something that no screen can draw."""

    def snapshot(self) -> QueueSnapshot:
        return structs.replace(super().snapshot(), priorities=[SECRET])


class StuckScreen(overview.OverviewScreen):
    """Blocks at a key, as when the terminal reads no output."""

    def on_key(self) -> None:
        os.write(1, b"STUCK")
        threading.Event().wait()


SECRET = "postgres://app:s3cret@db/app"


if __name__ == "__main__":
    if sys.argv[1] == "faulty":
        from gw_cli.main import program

        recording.ReplaySource = FaultySource
        sys.exit(program(["tui", "--demo", *sys.argv[2:]]))
    if sys.argv[1] == "stuck":
        overview.OverviewScreen = StuckScreen
        sys.exit(run({"": recording.ReplaySource}, Options(period=0.2)))
    # Say it past every widget as well: the last filter is there for what forgets to clean.
    from textual.widgets import Static

    class Leaking(overview.OverviewScreen):
        """Has a widget that does not clean its text."""

        def body(self) -> Any:
            yield from super().body()
            yield Static(EVIL, markup=False)

    overview.OverviewScreen = Leaking
    sys.exit(run({"": HostileSource}, Options(screen=sys.argv[1], period=0.2)))
