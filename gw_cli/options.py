"""The options commands share, each declared once, with the words of its setting."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gw_cli import configuration as c


def _of(setting: c.Setting[Any], *more: str, **extra: Any) -> Any:
    """Declare the option of a setting; `more` are its short form or, for a switch, both its sides."""
    default = setting.write(setting.default)
    words = f"{setting.help} [default: {default}]" if default else setting.help
    flags = more if any("/" in each for each in more) else (setting.flag, *more)
    return typer.Option(*flags, help=words, metavar=setting.metavar or None, show_default=False, **extra)


# A switch is None when neither side was given, so that the environment and the file are asked.

Connection = Annotated[str | None, _of(c.CONNECTION, "-c")]
Schema = Annotated[str | None, _of(c.SCHEMA, "-s")]
PgBin = Annotated[str | None, _of(c.PG_BIN)]
PreparedStatements = Annotated[
    bool | None, _of(c.PREPARED_STATEMENTS, "--prepared-statements/--no-prepared-statements")
]
MaxPoolSize = Annotated[str | None, _of(c.MAX_POOL_SIZE, "-m")]
Jobs = Annotated[str | None, _of(c.JOBS, "-j")]
PollInterval = Annotated[str | None, _of(c.POLL_INTERVAL)]
Prefetch = Annotated[str | None, _of(c.PREFETCH)]
GracePeriod = Annotated[str | None, _of(c.GRACE_PERIOD)]
Recover = Annotated[bool | None, _of(c.RECOVER, "--recover/--no-recover")]
HeartbeatInterval = Annotated[str | None, _of(c.HEARTBEAT_INTERVAL)]
SweepInterval = Annotated[str | None, _of(c.SWEEP_INTERVAL)]
SweepThreshold = Annotated[str | None, _of(c.SWEEP_THRESHOLD)]
RecoveryDelay = Annotated[str | None, _of(c.RECOVERY_DELAY)]
OrphansAfter = Annotated[str | None, _of(c.ORPHANS_AFTER)]
ResilientFlag = Annotated[list[str] | None, _of(c.RESILIENT_FLAG)]
ResilientMultiplier = Annotated[str | None, _of(c.RESILIENT_MULTIPLIER)]
Processes = Annotated[str | None, _of(c.PROCESSES)]
MaxJobs = Annotated[str | None, _of(c.MAX_JOBS)]
MaxLifetime = Annotated[str | None, _of(c.MAX_LIFETIME)]
MaxRss = Annotated[str | None, _of(c.MAX_RSS)]
ProbePort = Annotated[str | None, _of(c.PROBE_PORT)]
ProbeHost = Annotated[str | None, _of(c.PROBE_HOST)]
Metrics = Annotated[bool | None, _of(c.METRICS, "--metrics/--no-metrics")]
Listen = Annotated[bool | None, _of(c.LISTEN, "--listen/--no-listen")]
ListenConnection = Annotated[str | None, _of(c.LISTEN_CONNECTION)]
ClientTime = Annotated[bool | None, _of(c.CLIENT_TIME, "--client-time/--no-client-time")]
Strict = Annotated[bool | None, _of(c.STRICT, "--strict/--no-strict")]
Tasks = Annotated[str | None, _of(c.TASKS)]
App = Annotated[str | None, _of(c.APP, "-A")]
Crontab = Annotated[str | None, _of(c.CRONTAB)]
ExecutableEnv = Annotated[str | None, _of(c.EXECUTABLE_ENV)]
Watch = Annotated[bool | None, _of(c.WATCH, "--watch/--no-watch")]
ForbiddenFlag = Annotated[list[str] | None, _of(c.FORBIDDEN_FLAG)]
LogLevel = Annotated[str | None, _of(c.LOG_LEVEL)]
LogFormat = Annotated[str | None, _of(c.LOG_FORMAT)]
TuiReadOnly = Annotated[bool | None, _of(c.TUI_READ_ONLY, "--read-only/--no-read-only")]
TuiEnv = Annotated[str | None, _of(c.TUI_ENV)]
TuiInterval = Annotated[str | None, _of(c.TUI_INTERVAL)]
TuiTheme = Annotated[str | None, _of(c.TUI_THEME)]
TuiAscii = Annotated[bool | None, _of(c.TUI_ASCII, "--ascii/--no-ascii")]
TuiMouse = Annotated[bool | None, _of(c.TUI_MOUSE, "--mouse/--no-mouse")]
TuiPayload = Annotated[bool | None, _of(c.TUI_PAYLOAD, "--payload/--no-payload")]
TuiLogPayloads = Annotated[str | None, _of(c.TUI_LOG_PAYLOADS)]
TuiBulkCap = Annotated[str | None, _of(c.TUI_BULK_CAP)]

Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-C",
        metavar="FILE",
        help="The configuration file, instead of the nearest gw.toml or pyproject.toml with [tool.gw].",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON with stable keys.")]
