"""Every setting, declared once: its option, variable, key in `gw.toml`, help, default and documentation derive from it.

A setting that belongs to a worker takes its default from `WorkerSettings`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from gw_cli.settings.file_tables import CRON_ITEMS, VIEWS, View
from gw_cli.settings.kinds import (
    FACTOR,
    KEYS,
    NAMES,
    PROCESS_COUNT,
    REFERENCES,
    SHARDS as SHARD_LIST,
    SIZE,
    SWITCH,
    TARGETS,
    URL,
    VARIABLES,
    Kind,
    choice,
    count,
    duration,
    path,
    text,
)
from gw_core import WorkerSettings

if TYPE_CHECKING:
    from gw_core import CronItem

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("text", "json")
LOG_TIMES: Final = ("auto", "always", "never")

# The commands that use a setting, by the words after `gw`.
RUN: Final = frozenset({"run"})
DEV: Final = frozenset({"run", "dev"})
CRON_COMMANDS: Final = frozenset({"cron list", "cron run", "cron forget"})
ITEMS: Final = frozenset({"cron parse", "cron next", "cron list", "cron run"})
JOBS: Final = frozenset(
    {"add", "list", "count", "show", "complete", "fail", "reschedule", "retry", "remove", "cancel", "unlock"}
    | {"pause", "resume", "limit", "groups list", "groups cancel"}
)
REPORTS: Final = frozenset(
    {"stats", "queues", "pauses", "limits", "tasks", "tui", "doctor", "health", "config show", "history", "actions"}
)
MAINTENANCE: Final = frozenset(
    {"workers", "sweep", "unlock", "migrate", "cleanup", "record-others"} | {"grant", "revoke", "grants"}
)
QUEUE: Final = DEV | CRON_COMMANDS | JOBS | REPORTS | MAINTENANCE
DATABASE: Final = QUEUE | {"bench"}
SHARDED: Final = QUEUE - {"dev", "config show"}
STALE: Final = frozenset({"run", "workers", "sweep"})
TUI: Final = frozenset({"tui"})

_WORKER: Final = WorkerSettings()
_MILLISECOND: Final = timedelta(milliseconds=1)


class Section(msgspec.Struct, frozen=True):
    """The heading, in the help and in `gw.toml`, of the settings declared after it."""

    title: str


class Setting(msgspec.Struct, Generic[T_co], frozen=True):
    """One setting. A name with a dot belongs to a table of the file: `tui.theme` is `theme` in `[tui]`.

    `flags` are further spellings of its option, and `variables` further environment variables. `field` names the
    attribute of `WorkerSettings` that it sets. `derived` names the attribute that holds its default when the default
    depends on `sweep-threshold`. The value of a `secret` setting never appears in a message.
    `option` is the name of its option where that differs: the singular of a list. A `file_only` setting has neither
    option nor variable.
    """

    name: str
    kind: Kind[T_co]
    help: str
    default: T_co
    commands: frozenset[str] = RUN
    flags: tuple[str, ...] = ()
    more_variables: tuple[str, ...] = ()
    field: str = ""
    derived: str = ""
    secret: bool = False
    option: str = ""
    file_only: bool = False

    @property
    def section(self) -> str:
        """The heading above it."""
        return _HEADINGS[self.name]

    @property
    def flag(self) -> str:
        """The long flag."""
        return f"--{self.option or self.name.rpartition('.')[2]}"

    @property
    def keyword(self) -> str:
        """The name of the command's parameter."""
        return self.name.replace("-", "_").replace(".", "_")

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables; the first that is set counts."""
        return () if self.file_only else (f"GW_{self.keyword.upper()}", *self.more_variables)

    @property
    def help_with_default(self) -> str:
        """The help of its option."""
        default = self.kind.write(self.default)
        return f"{self.help} [default: {default}]" if default else self.help


def _worker(name: str, kind: Kind[T], help_: str, *, field: str = "", derived: str = "", **rest: Any) -> Setting[T]:
    """Declare a setting of `WorkerSettings`, with the default from there."""
    field = field or name.replace("-", "_")
    default: T = attrgetter(derived or field)(_WORKER)
    return Setting(name, kind, help_, default, field=field, derived=derived, **rest)


def _console(
    name: str, kind: Kind[T], help_: str, *, default: T, commands: frozenset[str] = TUI, **rest: Any
) -> Setting[T]:
    """Declare a setting of the console, which the table `[tui]` of the file has."""
    return Setting(f"tui.{name}", kind, help_, default, commands, **rest)


_DATABASE_SECTION: Final = Section("Database")
CONNECTION: Final = Setting[str | None](
    "connection",
    URL,
    "PostgreSQL connection: a URL, a libpq string, a database name, or embedded:",
    default=None,
    commands=DATABASE,
    flags=("-c",),
    more_variables=("DATABASE_URL",),
    secret=True,
)
SHARDS: Final = Setting[Mapping[str, str]](
    "shards",
    SHARD_LIST,
    "One of several databases, or the name of a configured one (repeatable)",
    default=MappingProxyType({}),
    commands=SHARDED,
    secret=True,
    option="shard",
)
SCHEMA: Final = Setting[str](
    "schema",
    text("NAME"),
    "Schema of the queue",
    default="graphile_worker",
    commands=QUEUE | {"sql"},
    flags=("-s",),
    more_variables=("GRAPHILE_WORKER_SCHEMA",),
)
PASSWORD_COMMAND: Final = Setting[str | None](
    "password-command",
    text("COMMAND"),
    "Command that prints the password; runs for each new connection",
    default=None,
    commands=QUEUE,
)
PG_BIN: Final = Setting[Path | None](
    "pg-bin", path("DIR"), "Folder with PostgreSQL's programs, for embedded:", default=None, commands=DATABASE
)
PREPARED_STATEMENTS: Final = Setting[bool](
    "prepared-statements",
    SWITCH,
    "Prepared statements; off behind a pooler, which gw detects",
    default=True,
    commands=frozenset({"run", "bench"}),
)
MAX_POOL_SIZE: Final = Setting[int](
    "max-pool-size", count(1, 10_000), "Maximum number of connections open for tasks", default=10, flags=("-m",)
)
LISTEN: Final = _worker("listen", SWITCH, "Use LISTEN/NOTIFY; with --no-listen, poll only")
LISTEN_CONNECTION: Final = Setting[str | None](
    "listen-connection", URL, "Direct connection for LISTEN, if --connection uses a pooler", default=None, secret=True
)

_TASKS_SECTION: Final = Section("Tasks")
TASKS: Final = Setting[Path](
    "tasks", path("DIR"), "Folder with the tasks", default=Path("tasks"), commands=DEV | ITEMS | {"cleanup"}
)
APP: Final = Setting[str | None](
    "app",
    text("MODULE:NAME"),
    "TaskRegistry to use instead of a folder",
    default=None,
    commands=DEV | ITEMS | {"cleanup"},
    flags=("-A",),
)
CRONTAB: Final = Setting[Path | None](
    "crontab",
    path("FILE"),
    "Crontab [default: the file crontab beside the task folder]",
    default=None,
    commands=DEV | {"cron list", "cron run", "tui"},
)
CRON: Final = Setting[Sequence["CronItem"]](
    "cron",
    CRON_ITEMS,
    "Cron items, beside those of the crontab; tables [[cron]]",
    default=(),
    commands=frozenset(),
    file_only=True,
)
STRICT: Final = _worker("strict", SWITCH, "Exit if a task fails to load, or a job with --once")
WATCH: Final = Setting[bool]("watch", SWITCH, "Reload task files when they change", default=False, flags=("-w",))
HISTORY: Final = _worker("history", duration(), "How long history keeps jobs that have ended, such as 7d")
STATISTICS: Final = _worker("statistics", duration(), "How long to keep what tasks did each minute; 0s: off")
KEEP_FAILED: Final = _worker(
    "keep-failed", duration(), "Delete failed jobs after a time, such as 30d [default: keep them]"
)
TIMEOUT: Final = _worker("timeout", duration(_MILLISECOND), "How long a run may take if its task has no timeout")
EXECUTABLE_ENV: Final = _worker("executable-env", VARIABLES, "Variables for executable tasks: names, all, minimal")
ONLY: Final = _worker("only", TARGETS, "Claim only jobs of these, such as task:mail,queue:billing (repeatable)")
FORBIDDEN_FLAG: Final = Setting[Sequence[str]](
    "forbidden-flag", NAMES, "Skip jobs with this flag (repeatable)", default=()
)
PLUGINS: Final = Setting[Sequence[str]](
    "plugins", REFERENCES, "Plugin to load (repeatable)", default=(), option="plugin"
)

_CONCURRENCY_SECTION: Final = Section("Concurrency")
CONCURRENCY: Final = _worker(
    "concurrency",
    count(1, 10_000),
    "Number of jobs to run at the same time",
    commands=DEV | {"bench"},
    flags=("--jobs", "-j"),
)
POLL_INTERVAL: Final = _worker(
    "poll-interval",
    duration(_MILLISECOND, milliseconds=True),
    "How often to poll; a number without a unit is milliseconds",
)
PREFETCH: Final = _worker("prefetch", duration(), "How much work to prefetch beyond idle threads")
CLIENT_TIME: Final = _worker(
    "client-time", SWITCH, "Use this machine's clock instead of the database's", field="use_client_time"
)
GRACE_PERIOD: Final = _worker("grace-period", duration(), "How long running jobs may take after the first signal")

_RECOVERY_SECTION: Final = Section("Recovery")
RECOVER: Final = _worker("recover", SWITCH, "Recover jobs locked by dead workers")
HEARTBEAT_INTERVAL: Final = _worker(
    "heartbeat-interval",
    duration(_MILLISECOND),
    "Heartbeat interval; at most half of --sweep-threshold",
    derived="effective_heartbeat_interval",
)
SWEEP_INTERVAL: Final = _worker(
    "sweep-interval",
    duration(_MILLISECOND),
    "How often to check for dead workers; at most --sweep-threshold",
    derived="effective_sweep_interval",
)
SWEEP_THRESHOLD: Final = _worker(
    "sweep-threshold",
    duration(),
    "Age of a dead worker's last heartbeat; below 4s, one lost suffices",
    commands=STALE,
)
RECOVERY_DELAY: Final = _worker(
    "recovery-delay",
    duration(),
    "Delay of recovered jobs",
    derived="effective_recovery_delay",
    commands=frozenset({"run", "sweep"}),
)
ORPHANS_AFTER: Final = _worker(
    "orphans-after", duration(), "Age of the last lock of a worker without heartbeats", commands=STALE
)
RESILIENT_FLAG: Final = _worker(
    "resilient-flag", NAMES, "Job flag for a longer threshold (repeatable)", field="resilient_flags", commands=STALE
)
RESILIENT_MULTIPLIER: Final = _worker(
    "resilient-multiplier", FACTOR, "Factor by which --resilient-flag extends the threshold", commands=STALE
)

_PROCESSES_SECTION: Final = Section("Processes")
PROCESSES: Final = Setting[int | None](
    "processes", PROCESS_COUNT, "Number of worker processes, or auto: one per processor", default=None
)
MAX_JOBS: Final = _worker("max-jobs", count(1, 10**15), "Shut down gracefully after N jobs")
MAX_LIFETIME: Final = _worker("max-lifetime", duration(_MILLISECOND), "Shut down gracefully after this long")
MAX_RSS: Final = _worker("max-rss", SIZE, "Shut down gracefully above this much memory, such as 512M")

_PROBES_SECTION: Final = Section("Probes")
PROBE_PORT: Final = Setting[int | None](
    "probe-port", count(0, 65535, "PORT"), "Port that serves /live, /ready and, with --metrics, /metrics", default=None
)
PROBE_HOST: Final = Setting[str]("probe-host", text("HOST"), "Address that serves the probes", default="127.0.0.1")
METRICS: Final = Setting[bool]("metrics", SWITCH, "Serve Prometheus metrics; needs the extra metrics", default=False)

_LOGGING_SECTION: Final = Section("Logging")
LOG_LEVEL: Final = Setting[str](
    "log-level",
    choice("LEVEL", *LOG_LEVELS),
    "Minimum level: debug, info, warning or error",
    default="info",
    commands=DEV,
)
LOG_FORMAT: Final = Setting[str](
    "log-format", choice("FORMAT", *LOG_FORMATS), "Format of log lines: text or json", default="text"
)

LOG_TIME: Final = Setting[str](
    "log-time", choice("WHEN", *LOG_TIMES), "Time in text lines: auto, always or never", default="auto", commands=DEV
)

_CONSOLE_SECTION: Final = Section("Console")
TUI_READ_ONLY: Final = _console("read-only", SWITCH, "Read-only mode, enforced by the server", default=False)
TUI_ENV: Final[Setting[str | None]] = _console(
    "env", text("NAME"), "Environment name to show; prod… confirms every action", default=None
)
TUI_INTERVAL: Final = _console(
    "interval", duration(timedelta(milliseconds=100)), "Refresh interval", default=timedelta(seconds=1)
)
TUI_THEME: Final = _console(
    "theme",
    text("NAME", completion="gw-dark gw-light gw-contrast"),
    "gw-dark, gw-light, gw-contrast or a Textual theme",
    default="gw-dark",
)
TUI_ASCII: Final[Setting[bool | None]] = _console("ascii", SWITCH, "Use ASCII only [default: automatic]", default=None)
TUI_MOUSE: Final = _console("mouse", SWITCH, "Mouse support; off, the terminal selects text", default=True)
TUI_BLUR: Final = _console("blur", SWITCH, "Refresh ten times less often without focus", default=True)
TUI_PAYLOAD: Final = _console("payload", SWITCH, "Show payloads; off, they are not read", default=True)
TUI_MAX_MARKED: Final = _console("max-marked", count(1, 1_000_000), "Maximum number of marked jobs", default=10_000)
TUI_LOG_PAYLOADS: Final = _console(
    "log-payloads",
    choice("MODE", "whole", "masked", "none"),
    "Payloads in the action log: whole, masked or none",
    default="whole",
)
TUI_PORT: Final = _console(
    "port", count(0, 65535, "PORT"), "With --serve: port of 127.0.0.1; 0 takes a free one", default=8000
)
TUI_CONTEXTS: Final[Setting[Mapping[str, str]]] = _console(
    "contexts",
    SHARD_LIST,
    "More databases that the console can show, as NAME=URL",
    default=MappingProxyType({}),
    commands=frozenset(),
    secret=True,
    file_only=True,
)
TUI_VIEWS: Final[Setting[Mapping[str, View]]] = _console(
    "views",
    VIEWS,
    "Saved views of the console; tables [[tui.views]]",
    default=MappingProxyType({}),
    commands=frozenset(),
    file_only=True,
)
TUI_KEYS: Final[Setting[Mapping[str, str]]] = _console(
    "keys", KEYS, "Custom keys of commands; a table in the file", default={}, commands=frozenset()
)

SETTINGS: Final[tuple[Setting[Any], ...]] = tuple(each for each in [*globals().values()] if isinstance(each, Setting))
"""Every setting, in the order of the declarations above."""


def _headings() -> Iterator[tuple[str, str]]:
    title = ""
    for each in [*globals().values()]:
        if isinstance(each, Section):
            title = each.title
        elif isinstance(each, Setting):
            yield each.name, title


_HEADINGS: Final = dict(_headings())

BY_NAME: Final[Mapping[str, Setting[Any]]] = {setting.name: setting for setting in SETTINGS}
TABLES: Final = frozenset(name.partition(".")[0] for name in BY_NAME if "." in name)

NODE_DEBUG: Final = "GRAPHILE_LOGGER_DEBUG"

OTHER_VARIABLES: Final = {
    "GW_CONFIG": "Configuration file, as with --config.",
    "GW_DEBUG": "Print the traceback of an error, as with --debug.",
    NODE_DEBUG: "`1` is `--log-level debug` for `gw run`, as in Graphile Worker.",
}
"""Variables that are not settings, because gw reads them before it reads the settings."""
