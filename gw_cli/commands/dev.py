"""`gw dev`: run jobs while the tasks are being written."""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from typing import Final

from gw_cli import stderr
from gw_cli.command import command
from gw_cli.commands.run import run_worker
from gw_cli.settings import Configuration, table
from gw_cli.settings.kinds import EMBEDDED
from gw_core.errors import InvalidInputError

SHORT_THRESHOLD: Final = timedelta(seconds=30)
"""A developer at a terminal waits for the jobs of a worker that was killed."""


@command("dev")
def dev(configuration: Configuration) -> int:
    """Run jobs and reload task files when they change.

    If no database is named, PostgreSQL runs in .gw/postgres and stops with the last program that uses it. Jobs of a
    worker that crashed are recovered after 30 seconds.
    """
    if configuration[table.APP] is None and not configuration[table.TASKS].is_dir():
        folder = str(configuration[table.TASKS])
        raise InvalidInputError(f"the task folder {folder!r} does not exist; create one with: gw init")
    return run_worker(_for_development(configuration))


def _for_development(configuration: Configuration) -> Configuration:
    """Return the configuration with what development needs: a database, fast recovery and reloading."""
    if configuration[table.CONNECTION] is None:
        stderr.note(
            "No database is configured; PostgreSQL runs in .gw/postgres. Other commands: --connection embedded:"
        )
        configuration = configuration.derive(table.CONNECTION, EMBEDDED)
    if configuration.origin(table.SWEEP_THRESHOLD).kind == "default":
        configuration = configuration.derive(table.SWEEP_THRESHOLD, SHORT_THRESHOLD)
    return configuration.derive(table.LOG_FORMAT, "text").derive(
        table.WATCH, configuration[table.APP] is None and _can_watch()
    )


def _can_watch() -> bool:
    """Return whether files can be watched; everything else works without it."""
    if find_spec("watchfiles") is not None:
        return True
    stderr.note("Changed files are not reloaded; to enable it: pip install 'graphile-worker[watch]'")
    return False
