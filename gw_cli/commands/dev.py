"""`gw dev`: run jobs while the tasks are being written."""

from __future__ import annotations

from typing import Final

from gw_cli import configuration as c, options, stderr
from gw_cli.command import command, new_app
from gw_cli.commands import run as running
from gw_cli.connect import configured
from gw_core.errors import InvalidInputError

EMBEDDED: Final = "embedded:"
CRASH_SEEN_AFTER: Final = "30s"
"""Somebody waits at a keyboard for the jobs of a worker that was killed."""

app = new_app()


@command(app, "dev")
def dev(
    connection: options.Connection = None,
    schema: options.Schema = None,
    tasks: options.Tasks = None,
    registry: options.App = None,
    jobs: options.Jobs = None,
    crontab: options.Crontab = None,
    log_level: options.LogLevel = None,
    pg_bin: options.PgBin = None,
    config: options.Config = None,
) -> int:
    """Run jobs while you write tasks, and read changed files again.

    Where no database is named, PostgreSQL runs in .gw/postgres and ends with the last program that uses it. Jobs of a
    worker that crashed are given back after half a minute.
    """
    configuration = configured(
        config, connection=connection, schema=schema, tasks=tasks, app=registry, crontab=crontab, pg_bin=pg_bin
    )
    if configuration[c.APP] is None and not configuration[c.TASKS].is_dir():
        raise InvalidInputError(
            f"there is no folder {str(configuration[c.TASKS])!r} with tasks; make one with: gw init"
        )
    if configuration[c.CONNECTION] is None:
        connection = EMBEDDED
        stderr.note(
            "No database was named, so PostgreSQL runs in .gw/postgres; from other terminals use --connection embedded:"
        )
    return running.run(
        connection=connection,
        schema=schema,
        tasks=tasks,
        registry=registry,
        watch=configuration[c.APP] is None and _can_watch(),
        jobs=jobs,
        crontab=crontab,
        log_level=log_level,
        log_format="text",
        recover=True,
        sweep_threshold=None if configuration.origin(c.SWEEP_THRESHOLD).kind != "default" else CRASH_SEEN_AFTER,
        pg_bin=pg_bin,
        config=config,
    )


def _can_watch() -> bool:
    """Tell whether files can be watched; without that everything else still works."""
    from importlib.util import find_spec

    if find_spec("watchfiles") is not None:
        return True
    stderr.note("Changed files are not read again; for that: pip install 'graphile-worker[watch]'")
    return False
