"""`gw run`: run jobs."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from gw_cli import garbage_collection, output, project
from gw_cli.command import command
from gw_cli.connect import open_client, password_source
from gw_cli.exit_codes import ExitCode
from gw_cli.settings import Configuration, table
from gw_cli.settings.used_connections import remember_use
from gw_cli.sharding import shards_of
from gw_cli.worker_processes import NUMBER, TIMES, UNANNOUNCED, as_worker, bind, start_log, supervise
from gw_core.errors import InvalidInputError

if TYPE_CHECKING:
    from gw_core import CronItem, Plugin, ProbeSettings, Runner, RunResult, TaskRegistry


@command("run")
def run(
    configuration: Configuration,
    once: Annotated[bool, typer.Option("--once", help="Exit when no job can run now")] = False,
    cron: Annotated[bool, typer.Option("--cron", help="With --once: backfill missed cron runs")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Same as --log-level debug")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Same as --log-level warning")] = False,
    schema_only: Annotated[bool, typer.Option("--schema-only", hidden=True)] = False,
    process_number: Annotated[str | None, typer.Option(NUMBER, hidden=True)] = None,
    unannounced: Annotated[bool, typer.Option(UNANNOUNCED, hidden=True)] = False,
    with_times: Annotated[bool, typer.Option(TIMES, hidden=True)] = False,
) -> int:
    """Run jobs until stopped, or with --once until none is left.

    Installs or updates the schema first. A signal stops gracefully; another one after five seconds stops
    immediately.
    """
    if once and schema_only:
        raise InvalidInputError("--once and --schema-only were both given; give one of them")
    if cron and not once:
        raise InvalidInputError("--cron requires --once; without --once, cron items are always scheduled")
    configuration = _with_level(configuration, verbose=verbose, quiet=quiet)
    shards = shards_of(configuration)
    if shards and configuration[table.LISTEN_CONNECTION] is not None:
        raise InvalidInputError("--listen-connection leads to one database; it cannot be used with shards")
    if schema_only:
        return _only_the_schema(configuration)
    if process_number is not None:
        return _run_process(
            configuration.derive(table.LOG_TIME, "always" if with_times else "never"),
            int(process_number),
            once=once,
            cron=cron,
            log_startup=not unannounced,
        )
    if shards or configuration[table.PROCESSES] is not None:
        return supervise(configuration, once=once, shards=list(shards))
    return run_worker(configuration, once=once, cron=cron)


class Part(msgspec.Struct, frozen=True):
    """What a process does for all of its supervisor's: one logs the start of a worker, one of each shard's crontab."""

    number: int | None = None
    log_startup: bool = True
    schedule_cron: bool = True


def _run_process(configuration: Configuration, number: int, *, once: bool, cron: bool, log_startup: bool) -> int:
    """Run jobs as one of the supervisor's processes; with shards, they take the shards in turn."""
    shards = list(shards_of(configuration).values()) or [configuration]
    index = (number - 1) % len(shards)
    part = Part(number, log_startup=log_startup, schedule_cron=index == 0)
    return run_worker(shards[index], once=once, cron=cron, part=part)


def run_worker(configuration: Configuration, *, once: bool = False, cron: bool = False, part: Part = Part()) -> int:  # noqa: B008 - frozen
    """Run jobs in this process and return the exit code."""
    from gw_core.events import PoolStarted

    channel = as_worker(part.number)
    runner = _runner(configuration, part, once=once)
    runner.events.on(PoolStarted, lambda event: garbage_collection.resume())
    if channel is not None:
        bind(runner, channel)
    return _code(runner.run_once(cron=cron) if once else runner.run())


def _with_level(configuration: Configuration, *, verbose: bool, quiet: bool) -> Configuration:
    given = configuration.origin(table.LOG_LEVEL).kind == "flag"
    if [given, verbose, quiet].count(True) > 1:
        raise InvalidInputError("--log-level, --verbose and --quiet contradict each other; give one of them")
    if not (verbose or quiet):
        is_default = configuration.origin(table.LOG_LEVEL).kind == "default"
        verbose = is_default and os.environ.get(table.NODE_DEBUG) == "1"
    if not (verbose or quiet):
        return configuration
    return configuration.derive(table.LOG_LEVEL, "debug" if verbose else "warning")


def _only_the_schema(configuration: Configuration) -> int:
    with open_client(configuration) as client:
        client.migrate()
    output.line("Schema updated")
    return ExitCode.OK


def _runner(configuration: Configuration, part: Part, *, once: bool) -> Runner:
    from gw_core import Runner

    remember_use(configuration)
    start_log(configuration, "core", process=part.number)
    return Runner(
        configuration[table.CONNECTION],
        schema=configuration[table.SCHEMA],
        tasks=_tasks(configuration, once=once),
        settings=configuration.worker_settings(),
        forbidden_flags=configuration[table.FORBIDDEN_FLAG] or None,
        plugins=_plugins(configuration),
        crontab=_crontab(configuration),
        schedule_cron=part.schedule_cron,
        prepared_statements=configuration[table.PREPARED_STATEMENTS],
        listen_conninfo=configuration[table.LISTEN_CONNECTION],
        watch=configuration[table.WATCH],
        max_pool_size=configuration[table.MAX_POOL_SIZE],
        pg_bin=configuration[table.PG_BIN],
        password=password_source(configuration),
        probe=_probe(configuration, part.number),
        log_startup=part.log_startup,
    )


def _plugins(configuration: Configuration) -> list[Plugin]:
    if not configuration[table.PLUGINS]:
        return []
    from gw_core.front_ends import load_plugin

    return [load_plugin(each) for each in configuration[table.PLUGINS]]


def _probe(configuration: Configuration, process: int | None) -> ProbeSettings | None:
    """Return where probes are answered, if anywhere; of several processes each has the next port."""
    from gw_core import ProbeSettings

    port = configuration[table.PROBE_PORT]
    if port is not None:
        port += process - 1 if port and process else 0
        return ProbeSettings(port=port, host=configuration[table.PROBE_HOST], metrics=configuration[table.METRICS])
    # A file or the environment may set more for many workers than this one requests.
    for setting, is_wanted in ((table.METRICS, configuration[table.METRICS]), (table.PROBE_HOST, True)):
        if is_wanted and configuration.origin(setting).kind == "flag":
            raise InvalidInputError(f"{setting.flag} goes with a port; give --probe-port as well")
    return None


def _tasks(configuration: Configuration, *, once: bool) -> TaskRegistry | Path:
    source = project.task_source(configuration)
    if configuration[table.WATCH] and not isinstance(source, Path):
        raise InvalidInputError(
            "--watch reads the files of a task folder again, and --app has none; leave one of them out, or let changes "
            f"restart the worker: watchfiles --filter python 'gw run --app {source.app}'"
        )
    if configuration[table.WATCH] and once:
        raise InvalidInputError(
            "--watch reads the files of a task folder again, and --once ends before they change; leave one of them out"
        )
    return source


def _crontab(configuration: Configuration) -> Sequence[CronItem] | Path | None:
    """Return the crontab, with the items of the configuration file if it has any."""
    has_more = bool(configuration[table.CRON])
    return project.written_items(configuration) if has_more else project.crontab_file(configuration)


def _code(result: RunResult) -> int:
    """Return the exit code; a run ended by a signal ends with that signal, as a shell expects it."""
    return result.exit_code if result.signal is None else 128 + signal.Signals[result.signal]
