"""`gw run --processes`: the supervisor, and what makes a process one of its workers."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gw_cli import output, stderr
from gw_cli.connect import open_client
from gw_cli.exit_codes import ExitCode
from gw_cli.settings import Configuration, table

if TYPE_CHECKING:
    from gw_core import Client, Logger, Runner
    from gw_core.operations import ControlChannel

NUMBER: Final = "--process-number"
UNANNOUNCED: Final = "--unannounced"

HOPELESS: Final = (
    ExitCode.USAGE,
    ExitCode.DENIED,
    ExitCode.SCHEMA,
    ExitCode.TASKS,
    ExitCode.BREAKING_MIGRATION,
)
"""After these, starting a process again brings nothing but the same."""


def supervise(configuration: Configuration, *, once: bool) -> int:
    """Run the worker processes asked for, and return the exit code."""
    from gw_core import Logger
    from gw_core.operations import Supervisor

    processes = configuration[table.PROCESSES]
    assert processes is not None  # noqa: S101 - only called when several processes are configured
    stream = stderr.log_stream()
    factory = stderr.log_factory(
        level=configuration[table.LOG_LEVEL], log_format=configuration[table.LOG_FORMAT], stream=stream
    )
    if configuration[table.LOG_FORMAT] == "json":
        stderr.speak_through(factory({"label": "supervisor"}))
    supervisor = Supervisor(
        worker_command,
        processes=processes,
        grace_period=configuration[table.GRACE_PERIOD],
        once=once,
        hopeless=HOPELESS,
        passing=(ExitCode.UNAVAILABLE,),
        pass_on=lambda channel, lines: output.pass_on(lines) if channel == "stdout" else stream.pass_on(lines),
        logger=Logger(factory),
    )
    with open_client(configuration) as client:
        _migrate(client, Logger(factory), waits=not once)
        if client.is_embedded:
            # Held open, or the first process to end might stop the server under the next.
            return supervisor.run()
    return supervisor.run()


def _migrate(client: Client, logger: Logger, *, waits: bool) -> None:
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
                logger.scope(label="supervisor").warning(f"Cannot start yet: {error}; trying again every second")
            has_reported = True
            time.sleep(1)


def worker_command(number: int, *, announces: bool) -> Sequence[str]:
    """Return the command line of a worker process: this program's own, and which of the processes it is."""
    return [
        sys.executable,
        *_interpreter_options(),
        "-m",
        "gw_cli",
        *sys.argv[1:],
        NUMBER,
        str(number),
        *([] if announces else [UNANNOUNCED]),
    ]


def _interpreter_options() -> Sequence[str]:
    """Keep the current folder off the import path where it is off ours: a queue.py there must not hide anything."""
    return [] if sys.path[:1] in ([""], [str(Path.cwd())]) else ["-P"]


def as_worker() -> ControlChannel:
    """Take the place of a worker process: print line by line, for another program passes it on."""
    from gw_core.operations import ControlChannel

    stdout: Any = sys.stdout
    if hasattr(stdout, "reconfigure"):
        stdout.reconfigure(line_buffering=True)
    return ControlChannel()


def bind(runner: Runner, line: ControlChannel) -> None:
    """Let the supervisor stop this runner, and report when it starts."""
    from gw_core.events import PoolStarted

    runner.events.on(PoolStarted, lambda event: line.send_ready())
    line.on_command(stop=runner.stop, force=runner.force)
