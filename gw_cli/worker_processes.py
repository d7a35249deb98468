"""`gw run --processes`: the supervisor, and what makes a process one of its workers."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gw_cli import log_output, output, stderr
from gw_cli.connect import open_client
from gw_cli.exit_codes import ExitCode
from gw_cli.settings import Configuration, table
from gw_core.runtime.files import current_folder

if TYPE_CHECKING:
    import logging

    from gw_core import Client, Runner
    from gw_core.front_ends import ControlChannel

NUMBER: Final = "--process-number"
UNANNOUNCED: Final = "--unannounced"
TIMES: Final = "--with-log-times"

FATAL_CODES: Final = (
    ExitCode.USAGE,
    ExitCode.DENIED,
    ExitCode.SCHEMA,
    ExitCode.TASKS,
    ExitCode.BREAKING_MIGRATION,
)
"""After these, starting a process again brings nothing but the same."""


def supervise(configuration: Configuration, *, once: bool, shards: Sequence[str] = ()) -> int:
    """Run the worker processes asked for, as many for each of the shards, and return the exit code."""
    from gw_core.front_ends import Supervisor

    processes = (configuration[table.PROCESSES] or 1) * max(1, len(shards))
    stream = log_output.log_stream()
    logger = start_log(configuration, "supervisor", stream=stream)
    supervisor = Supervisor(
        partial(worker_command, times=log_output.adds_times(configuration[table.LOG_TIME])),
        processes=processes,
        grace_period=configuration[table.GRACE_PERIOD],
        once=once,
        independent=bool(shards),
        fatal_codes=FATAL_CODES,
        transient_codes=(ExitCode.UNAVAILABLE,),
        pass_on=lambda channel, lines: output.pass_on(lines) if channel == "stdout" else stream.pass_on(lines),
    )
    for first, name in enumerate(shards, start=1):
        numbers = range(first, processes + 1, len(shards))
        logger.info("Shard %s: %s", name, ", ".join(f"process {number}" for number in numbers))
    if shards:
        # Each process updates the schema of its own database, and waits for that alone.
        return supervisor.run()
    with open_client(configuration) as client:
        _migrate(client, logger, waits=not once)
        if client.is_embedded:
            # Held open: otherwise the first process to end could stop the server that the others use.
            return supervisor.run()
    return supervisor.run()


def start_log(configuration: Configuration, name: str, **options: Any) -> logging.Logger:
    """Send the log to stderr as the settings say, and return the logger of a part of gw."""
    from gw_core.front_ends import get_logger

    log_output.configure_logging(
        level=configuration[table.LOG_LEVEL],
        log_format=configuration[table.LOG_FORMAT],
        log_time=configuration[table.LOG_TIME],
        **options,
    )
    logger = get_logger(name)
    if configuration[table.LOG_FORMAT] == "json":
        stderr.log_errors(logger)
    return logger


def _migrate(client: Client, logger: logging.Logger, *, waits: bool) -> None:
    """Bring the schema up to date; with `waits` try again for as long as the database cannot be reached."""
    from gw_core.errors import DatabaseUnavailableError

    has_reported = False
    while True:
        try:
            client.migrate()
            return
        except DatabaseUnavailableError as error:
            if not waits:
                raise
            if not has_reported:
                logger.warning("Cannot start yet: %s; retrying every second", error)
            has_reported = True
            time.sleep(1)


def worker_command(number: int, *, announces: bool, times: bool = False) -> Sequence[str]:
    """Return the command line of a worker process: this program's own, and which of the processes it is."""
    return [
        sys.executable,
        *interpreter_options(),
        "-m",
        "gw_cli",
        *sys.argv[1:],
        NUMBER,
        str(number),
        *([] if announces else [UNANNOUNCED]),
        *([TIMES] if times else []),
    ]


def interpreter_options() -> Sequence[str]:
    """Keep the current folder off the import path if it is off ours: a queue.py there must not hide a module."""
    return [] if sys.path[:1] in ([""], [str(current_folder())]) else ["-P"]


def as_worker(number: int | None) -> ControlChannel | None:
    """Prepare to run jobs, as this process of a supervisor or alone.

    Tasks print line by line, also to a pipe: otherwise their output appears long after the log, or never.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    if number is None:
        return None
    from gw_core.front_ends import ControlChannel

    return ControlChannel()


def bind(runner: Runner, line: ControlChannel) -> None:
    """Let the supervisor stop this runner, and report when it starts."""
    from gw_core.events import PoolStarted

    runner.events.on(PoolStarted, lambda event: line.send_ready())
    line.on_command(stop=runner.stop, force=runner.force)
