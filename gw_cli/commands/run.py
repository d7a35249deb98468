"""`gw run`: run jobs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import configuration as c, options, output, stderr
from gw_cli.command import command, new_app
from gw_cli.connect import configured, open_client
from gw_cli.exit_codes import ExitCode
from gw_cli.worker_processes import NUMBER, UNANNOUNCED, as_worker, bind, supervise

if TYPE_CHECKING:
    from gw_core import ProbeSettings, Runner, RunResult, TaskRegistry, WorkerSettings

STRENGTH: Final = ("flag", "environment", "file", "default")

app = new_app()


@command(app, "run")
def run(
    connection: options.Connection = None,
    schema: options.Schema = None,
    tasks: options.Tasks = None,
    registry: options.App = None,
    once: Annotated[bool, typer.Option("--once", help="End when no job is left that can run now.")] = False,
    cron: Annotated[
        bool, typer.Option("--cron", help="With --once: add the runs of recurring tasks missed within their fill.")
    ] = False,
    strict: options.Strict = None,
    watch: options.Watch = None,
    jobs: options.Jobs = None,
    max_pool_size: options.MaxPoolSize = None,
    poll_interval: options.PollInterval = None,
    prefetch: options.Prefetch = None,
    grace_period: options.GracePeriod = None,
    recover: options.Recover = None,
    heartbeat_interval: options.HeartbeatInterval = None,
    sweep_interval: options.SweepInterval = None,
    sweep_threshold: options.SweepThreshold = None,
    recovery_delay: options.RecoveryDelay = None,
    orphans_after: options.OrphansAfter = None,
    resilient_flag: options.ResilientFlag = None,
    resilient_multiplier: options.ResilientMultiplier = None,
    processes: options.Processes = None,
    max_jobs: options.MaxJobs = None,
    max_lifetime: options.MaxLifetime = None,
    max_rss: options.MaxRss = None,
    probe_port: options.ProbePort = None,
    probe_host: options.ProbeHost = None,
    metrics: options.Metrics = None,
    listen: options.Listen = None,
    listen_connection: options.ListenConnection = None,
    client_time: options.ClientTime = None,
    prepared_statements: options.PreparedStatements = None,
    crontab: options.Crontab = None,
    executable_env: options.ExecutableEnv = None,
    forbidden_flag: options.ForbiddenFlag = None,
    log_level: options.LogLevel = None,
    log_format: options.LogFormat = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="As --log-level debug.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="As --log-level warning.")] = False,
    pg_bin: options.PgBin = None,
    config: options.Config = None,
    schema_only: Annotated[bool, typer.Option("--schema-only", hidden=True)] = False,
    process_number: Annotated[str | None, typer.Option(NUMBER, hidden=True)] = None,
    unannounced: Annotated[bool, typer.Option(UNANNOUNCED, hidden=True)] = False,
) -> int:
    """Run jobs until told to stop, or with --once until none is left.

    The schema is installed or brought up to date first. The first signal ends in order, the second at once.
    """
    from gw_core.errors import InvalidInputError

    if once and schema_only:
        raise InvalidInputError("--once and --schema-only were both given; give one of them")
    if cron and not once:
        raise InvalidInputError("--cron goes with --once; without it recurring tasks are scheduled anyway")
    configuration = configured(
        config,
        connection=connection,
        schema=schema,
        tasks=tasks,
        app=registry,
        strict=strict,
        watch=watch,
        jobs=jobs,
        max_pool_size=max_pool_size,
        poll_interval=poll_interval,
        prefetch=prefetch,
        grace_period=grace_period,
        recover=recover,
        heartbeat_interval=heartbeat_interval,
        sweep_interval=sweep_interval,
        sweep_threshold=sweep_threshold,
        recovery_delay=recovery_delay,
        orphans_after=orphans_after,
        resilient_flag=resilient_flag,
        resilient_multiplier=resilient_multiplier,
        processes=processes,
        max_jobs=max_jobs,
        max_lifetime=max_lifetime,
        max_rss=max_rss,
        probe_port=probe_port,
        probe_host=probe_host,
        metrics=metrics,
        listen=listen,
        listen_connection=listen_connection,
        client_time=client_time,
        prepared_statements=prepared_statements,
        crontab=crontab,
        executable_env=executable_env,
        forbidden_flag=forbidden_flag,
        log_level=_level(log_level, verbose=verbose, quiet=quiet),
        log_format=log_format,
        pg_bin=pg_bin,
    )
    if schema_only:
        return _only_the_schema(configuration)
    if process_number is None:
        if configuration[c.PROCESSES] is not None:
            return supervise(configuration, once=once)
        runner = _runner(configuration, once=once)
    else:
        line = as_worker()
        runner = _runner(configuration, once=once, process=int(process_number), log_startup=not unannounced)
        bind(runner, line)
    return _code(runner.run_once(cron=cron) if once else runner.run())


def _level(given: str | None, *, verbose: bool, quiet: bool) -> str | None:
    from gw_core.errors import InvalidInputError

    if [given is not None, verbose, quiet].count(True) > 1:
        raise InvalidInputError("--log-level, --verbose and --quiet say different things; give one of them")
    return "debug" if verbose else "warning" if quiet else given


def _only_the_schema(configuration: c.Configuration) -> int:
    with open_client(configuration) as client:
        client.migrate()
    output.line("Schema updated")
    return ExitCode.OK


def _runner(
    configuration: c.Configuration, *, once: bool, process: int | None = None, log_startup: bool = True
) -> Runner:
    from gw_core import Logger, Runner

    factory = stderr.log_factory(
        level=configuration[c.LOG_LEVEL], log_format=configuration[c.LOG_FORMAT], process=process
    )
    if configuration[c.LOG_FORMAT] == "json":
        stderr.speak_through(factory({"label": "core"}))
    return Runner(
        configuration[c.CONNECTION],
        schema=configuration[c.SCHEMA],
        tasks=_tasks(configuration, once=once),
        settings=_settings(configuration),
        forbidden_flags=configuration[c.FORBIDDEN_FLAG] or None,
        logger=Logger(factory),
        crontab=_crontab(configuration),
        prepared_statements=configuration[c.PREPARED_STATEMENTS],
        listen_conninfo=configuration[c.LISTEN_CONNECTION],
        watch=configuration[c.WATCH],
        max_pool_size=configuration[c.MAX_POOL_SIZE],
        pg_bin=configuration[c.PG_BIN],
        probe=_probe(configuration, process),
        log_startup=log_startup,
    )


def _settings(configuration: c.Configuration) -> WorkerSettings:
    from gw_core import WorkerSettings

    return WorkerSettings(
        concurrency=configuration[c.JOBS],
        poll_interval=configuration[c.POLL_INTERVAL],
        prefetch=configuration[c.PREFETCH],
        executable_env=configuration[c.EXECUTABLE_ENV],
        grace_period=configuration[c.GRACE_PERIOD],
        use_client_time=configuration[c.CLIENT_TIME],
        listen=configuration[c.LISTEN],
        strict=configuration[c.STRICT],
        recover=configuration[c.RECOVER],
        heartbeat_interval=configuration[c.HEARTBEAT_INTERVAL],
        sweep_interval=configuration[c.SWEEP_INTERVAL],
        sweep_threshold=configuration[c.SWEEP_THRESHOLD],
        recovery_delay=configuration[c.RECOVERY_DELAY],
        orphans_after=configuration[c.ORPHANS_AFTER],
        resilient_flags=configuration[c.RESILIENT_FLAG],
        resilient_multiplier=configuration[c.RESILIENT_MULTIPLIER],
        max_jobs=configuration[c.MAX_JOBS],
        max_lifetime=configuration[c.MAX_LIFETIME],
        max_rss=configuration[c.MAX_RSS],
    )


def _probe(configuration: c.Configuration, process: int | None) -> ProbeSettings | None:
    """Return where probes are answered, if anywhere; of several processes each has the next port."""
    from gw_core import ProbeSettings
    from gw_core.errors import InvalidInputError

    port = configuration[c.PROBE_PORT]
    if port is not None:
        port += process - 1 if port and process else 0
        return ProbeSettings(port=port, host=configuration[c.PROBE_HOST], metrics=configuration[c.METRICS])
    # What a file or the environment says for many workers may be more than this one asks for.
    for setting, is_wanted in ((c.METRICS, configuration[c.METRICS]), (c.PROBE_HOST, True)):
        if is_wanted and configuration.origin(setting).kind == "flag":
            raise InvalidInputError(f"{setting.flag} goes with a port; give --probe-port as well")
    return None


def _tasks(configuration: c.Configuration, *, once: bool) -> TaskRegistry | Path:
    """Return the registry of --app, or the folder; when both are set, the one that was set more strongly."""
    from gw_core import load_app
    from gw_core.errors import InvalidInputError

    app, folder = configuration.origin(c.APP), configuration.origin(c.TASKS)
    is_app = STRENGTH.index(app.kind) < STRENGTH.index(folder.kind)
    if app.kind == folder.kind != "default":
        raise InvalidInputError(f"{app}: app and tasks were both given; give one of them")
    if configuration[c.WATCH] and (is_app or once):
        reason = "--app has none" if is_app else "--once ends before anything changes"
        raise InvalidInputError(f"--watch reads the files of a task folder again, and {reason}; leave one of them out")
    return load_app(str(configuration[c.APP])) if is_app else configuration[c.TASKS]


def _crontab(configuration: c.Configuration) -> Path | None:
    given = configuration[c.CRONTAB]
    usual = Path("crontab")
    return given if given is not None else usual if usual.is_file() else None


def _code(result: RunResult) -> int:
    """Return the exit code; a run ended by a signal ends with that signal, as a shell expects it."""
    return result.exit_code if result.signal is None else 128 + signal.Signals[result.signal]
