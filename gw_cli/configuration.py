"""Every setting of the command line, and where its value comes from: flag, environment, file or default."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar, cast

from gw_cli.sanitize import quoted
from gw_core import WorkerSettings
from gw_core.errors import InvalidInputError, InvalidSettingError
from gw_core.operations import format_duration, parse_duration

T = TypeVar("T")

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("text", "json")

# libpq finds its database by these; user, password and port only add to what is named.
NAMING_PG_VARIABLES: Final = ("PGDATABASE", "PGHOST", "PGSERVICE")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from: `kind`, and the flag, variable or file by name."""

    kind: Literal["flag", "environment", "file", "default"]
    place: str = ""

    def __str__(self) -> str:
        return self.place or self.kind


# Without slots: before Python 3.12 a frozen generic dataclass with them cannot be made as Setting[int](…).
@dataclass(frozen=True, kw_only=True)
class Setting(Generic[T]):
    """One setting; its name is its key in the file, its long flag without dashes, and `GW_NAME` in the environment.

    A name with a dot stands in a table of the file: `tui.theme` in `[tui]`; its flag is `--theme` of the command `tui`.
    `read` makes a value of what a flag, a variable or a TOML file holds, or raises `ValueError` with what to write
    instead. `rebase` makes a relative value from a file relative to the file's folder. A `secret` is never shown as is.
    `follows` says what it is by itself where that depends on other settings.
    """

    name: str
    help: str
    read: Callable[[object], T]
    default: T
    write: Callable[[T], str] = str
    metavar: str = ""
    also: tuple[str, ...] = ()
    rebase: Callable[[T, Path], T] | None = None
    secret: bool = False
    follows: Callable[[Configuration], T] | None = None

    @property
    def flag(self) -> str:
        """The long flag."""
        return f"--{self.name.rpartition('.')[2]}"

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables, the first that is set wins."""
        return (f"GW_{self.name.upper().replace('-', '_').replace('.', '_')}", *self.also)

    def parse(self, raw: object, origin: Origin, folder: Path | None = None) -> T:
        """Return the value that `raw` stands for; raises `InvalidSettingError` naming the place."""
        try:
            value = self.read(raw)
        except ValueError as error:
            where = origin.place if origin.kind != "file" else f"{origin.place}: {self.name}"
            what = "" if self.secret else f" {quoted(str(raw))}"
            raise InvalidSettingError(f"{where}{what}: {error}") from None
        return value if self.rebase is None or folder is None else self.rebase(value, folder)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """What `gw.toml`, or `[tool.gw]` of a `pyproject.toml`, says."""

    path: Path
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A value and where it came from."""

    setting: Setting[Any]
    value: Any
    origin: Origin


@dataclass(frozen=True, slots=True)
class Configuration:
    """All settings with their values."""

    entries: Mapping[str, Resolved]
    file: Path | None = None

    def __getitem__(self, setting: Setting[T]) -> T:
        """Return the value of a setting."""
        return cast(T, self.entries[setting.name].value)

    def origin(self, setting: Setting[Any]) -> Origin:
        """Return where its value came from."""
        return self.entries[setting.name].origin


# -- how values read -------------------------------------------------------------------------------------------------


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError("give a text that is not empty")
    return raw


def _path(raw: object) -> Path:
    return Path(_text(raw)).expanduser()


def _count(smallest: int, largest: int) -> Callable[[object], int]:
    def read(raw: object) -> int:
        known = raw if isinstance(raw, int) and not isinstance(raw, bool) else None
        if isinstance(raw, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", raw):
            known = int(raw)
        if known is None or not smallest <= known <= largest:
            raise ValueError(f"give a whole number from {smallest} to {largest}")
        return known

    return read


def _processes(raw: object) -> int:
    if raw == "auto":
        from gw_cli.worker_processes import usable_processors  # knows the system, and our settings

        return usable_processors()
    try:
        return _count(1, 1000)(raw)
    except ValueError:
        raise ValueError("give a whole number from 1 to 1000, or auto") from None


def _factor(raw: object) -> float:
    known = float(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None
    if isinstance(raw, str) and re.fullmatch(r"[0-9]{1,7}([.][0-9]{1,6})?", raw):
        known = float(raw)
    if known is None or not 1 <= known <= 1_000_000:
        raise ValueError("give a number from 1 to 1000000")
    return known


def _size(raw: object) -> int:
    match = re.fullmatch(r"([0-9]{1,12})([KMGT]?)(?:i?B)?", str(raw).strip()) if isinstance(raw, str | int) else None
    if match is None or isinstance(raw, bool) or int(match[1]) < 1:
        raise ValueError("give a size like 512M or 2G, or a number of bytes")
    return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


def _switch(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    word = raw.lower() if isinstance(raw, str) else ""
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError("give true or false")


def _choice(*choices: str) -> Callable[[object], str]:
    def read(raw: object) -> str:
        if raw not in choices:
            raise ValueError(f"give one of {', '.join(choices)}")
        return str(raw)

    return read


def _names(raw: object) -> tuple[str, ...]:
    parts: Sequence[object] = raw.split(",") if isinstance(raw, str) else raw if isinstance(raw, list | tuple) else ()
    names = tuple(part.strip() for part in parts if isinstance(part, str))
    if not parts or len(names) != len(parts) or not all(names):
        raise ValueError("give names, none of them empty")
    return names


def _variables(raw: object) -> tuple[str, ...] | None:
    if raw in ("all", "minimal"):
        return None if raw == "all" else ()
    try:
        names = _names(raw)
    except ValueError:
        names = ("",)
    if not all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in names):
        raise ValueError("give names of variables, or all, or minimal")
    return names


def _keys(raw: object) -> Mapping[str, str]:
    if isinstance(raw, str):
        pairs = [part.partition("=") for part in raw.split(",")]
        raw = {name.strip(): key.strip() for name, _, key in pairs}
    if not isinstance(raw, Mapping) or not all(isinstance(key, str) and key.split() for key in raw.values()):
        raise ValueError("give each command its key, like retry=R,quit=ctrl+c")
    return {str(name).replace("-", "_"): str(key) for name, key in raw.items()}


def _duration(raw: object) -> timedelta:
    try:
        span: timedelta = parse_duration(_text(raw))
        return span
    except InvalidInputError:
        raise ValueError("write a span of time like 90s, 5m, 1h30m, 250ms or 2d") from None


def _milliseconds(raw: object) -> timedelta:
    # The ancestor's poll interval is a number of milliseconds; scripts that say `--poll-interval 500` go on to work.
    if isinstance(raw, int) and not isinstance(raw, bool):
        return timedelta(milliseconds=min(raw, 10**12))
    if isinstance(raw, str) and re.fullmatch(r"[0-9]{1,12}", raw):
        return timedelta(milliseconds=int(raw))
    return _duration(raw)


def _at_least(least: timedelta, read: Callable[[object], timedelta]) -> Callable[[object], timedelta]:
    def checked(raw: object) -> timedelta:
        span: timedelta = read(raw)
        if span < least:
            raise ValueError(f"give at least {format_duration(least)}")
        return span

    return checked


def _beside(path: Path, folder: Path) -> Path:
    return folder / path


def _embedded_beside(conninfo: str, folder: Path) -> str:
    """Keep the data folder of `embedded:` beside the file that asks for it, wherever `gw` is started."""
    if not conninfo.startswith("embedded:"):
        return conninfo
    where = conninfo.removeprefix("embedded:")
    if where.startswith("//") and where[2:3] not in ("", "/"):
        return conninfo  # names a host; the core refuses it with its own sentence
    return f"embedded:{folder / Path(where.removeprefix('//') or '.gw/postgres').expanduser()}"


def _written_switch(value: bool) -> str:
    return "true" if value else "false"


def _written_names(value: Sequence[str]) -> str:
    return ", ".join(value)


def _written_keys(value: Mapping[str, str]) -> str:
    return ",".join(f"{name}={key}" for name, key in value.items())


def _written_optional(value: object) -> str:
    return "" if value is None else str(value)


# -- the settings ----------------------------------------------------------------------------------------------------

_CORE = WorkerSettings()

CONNECTION: Final = Setting[str | None](
    name="connection",
    metavar="URL",
    help="The database: postgres://…, a libpq string, or embedded: for a PostgreSQL run for you.",
    read=_text,
    default=None,
    write=_written_optional,
    also=("DATABASE_URL",),
    rebase=lambda value, folder: None if value is None else _embedded_beside(value, folder),
    secret=True,
)
SCHEMA: Final = Setting[str](
    name="schema",
    metavar="NAME",
    help="The schema the queue lives in.",
    read=_text,
    default="graphile_worker",
    also=("GRAPHILE_WORKER_SCHEMA",),
)
PG_BIN: Final = Setting[Path | None](
    name="pg-bin",
    metavar="DIR",
    help="The folder with PostgreSQL's programs, for embedded:.",
    read=_path,
    default=None,
    write=_written_optional,
    rebase=lambda value, folder: None if value is None else _beside(value, folder),
)
PREPARED_STATEMENTS: Final = Setting[bool](
    name="prepared-statements",
    help="Use prepared statements; turn off behind a pooler in transaction mode.",
    read=_switch,
    default=True,
    write=_written_switch,
)
MAX_POOL_SIZE: Final = Setting[int](
    name="max-pool-size",
    metavar="N",
    help="The most connections tasks may have open through their context.",
    read=_count(1, 10_000),
    default=10,
)
JOBS: Final = Setting[int](
    name="jobs",
    metavar="N",
    help="How many jobs run at the same time.",
    read=_count(1, 10_000),
    default=_CORE.concurrency,
)
POLL_INTERVAL: Final = Setting[timedelta](
    name="poll-interval",
    metavar="SPAN",
    help="How often to look for scheduled jobs and retries; a bare number is milliseconds.",
    read=_at_least(timedelta(milliseconds=1), _milliseconds),
    default=_CORE.poll_interval,
    write=format_duration,
)
PREFETCH: Final = Setting[timedelta](
    name="prefetch",
    metavar="SPAN",
    help="How much work, measured in time, to claim beyond the free threads.",
    read=_duration,
    default=_CORE.prefetch,
    write=format_duration,
)
GRACE_PERIOD: Final = Setting[timedelta](
    name="grace-period",
    metavar="SPAN",
    help="How long running jobs may take to end after the first signal.",
    read=_duration,
    default=_CORE.grace_period,
    write=format_duration,
)
RECOVER: Final = Setting[bool](
    name="recover",
    help="Give back the jobs of workers that went silent.",
    read=_switch,
    default=_CORE.recover,
    write=_written_switch,
)
HEARTBEAT_INTERVAL: Final = Setting[timedelta](
    name="heartbeat-interval",
    metavar="SPAN",
    help="How often a worker says that it lives, also without --recover; if not given, at most a quarter "
    "of --sweep-threshold.",
    read=_at_least(timedelta(milliseconds=1), _duration),
    default=_CORE.effective_heartbeat_interval,
    write=format_duration,
    follows=lambda configuration: _worker(configuration).effective_heartbeat_interval,
)
SWEEP_INTERVAL: Final = Setting[timedelta](
    name="sweep-interval",
    metavar="SPAN",
    help="How often --recover looks for silent workers; if not given, at most a quarter of --sweep-threshold.",
    read=_at_least(timedelta(milliseconds=1), _duration),
    default=_CORE.effective_sweep_interval,
    write=format_duration,
    follows=lambda configuration: _worker(configuration).effective_sweep_interval,
)
SWEEP_THRESHOLD: Final = Setting[timedelta](
    name="sweep-threshold",
    metavar="SPAN",
    help="How long a worker may be silent before it counts as dead.",
    read=_duration,
    default=_CORE.sweep_threshold,
    write=format_duration,
)
RECOVERY_DELAY: Final = Setting[timedelta](
    name="recovery-delay",
    metavar="SPAN",
    help="How long a job taken from a dead worker waits; if not given, at most a tenth of --sweep-threshold.",
    read=_duration,
    default=_CORE.recovery.delay,
    write=format_duration,
    follows=lambda configuration: _worker(configuration).recovery.delay,
)
ORPHANS_AFTER: Final = Setting[timedelta](
    name="orphans-after",
    metavar="SPAN",
    help="How old the latest lock of a worker without a heartbeat, such as one of Node.js, must be to be taken away.",
    read=_duration,
    default=_CORE.orphans_after,
    write=format_duration,
)
RESILIENT_FLAG: Final = Setting[Sequence[str]](
    name="resilient-flag",
    metavar="FLAG",
    help="A worker that runs a job with this flag may be silent for longer; may be repeated.",
    read=_names,
    default=tuple(_CORE.resilient_flags),
    write=_written_names,
)
RESILIENT_MULTIPLIER: Final = Setting[float](
    name="resilient-multiplier",
    metavar="N",
    help="How many times longer it may be silent.",
    read=_factor,
    default=_CORE.resilient_multiplier,
    write=lambda value: f"{value:g}",
)
PROCESSES: Final = Setting[int | None](
    name="processes",
    metavar="N",
    help="Run so many worker processes under a supervisor, or auto: one for each processor.",
    read=_processes,
    default=None,
    write=_written_optional,
)
MAX_JOBS: Final = Setting[int | None](
    name="max-jobs",
    metavar="N",
    help="End in order after this many jobs, for a supervisor to start afresh.",
    read=_count(1, 10**15),
    default=None,
    write=_written_optional,
)
MAX_LIFETIME: Final = Setting[timedelta | None](
    name="max-lifetime",
    metavar="SPAN",
    help="End in order after this long.",
    read=_at_least(timedelta(milliseconds=1), _duration),
    default=None,
    write=lambda value: "" if value is None else format_duration(value),
)
MAX_RSS: Final = Setting[int | None](
    name="max-rss",
    metavar="SIZE",
    help="End in order when the process uses this much memory, such as 512M or 2G.",
    read=_size,
    default=None,
    write=_written_optional,
)
PROBE_PORT: Final = Setting[int | None](
    name="probe-port",
    metavar="PORT",
    help="Answer probes over HTTP on this port: /live, /ready and, with --metrics, /metrics.",
    read=_count(0, 65535),
    default=None,
    write=_written_optional,
)
PROBE_HOST: Final = Setting[str](
    name="probe-host",
    metavar="HOST",
    help="The address probes are answered on; the default can be reached from this machine only.",
    read=_text,
    default="127.0.0.1",
)
METRICS: Final = Setting[bool](
    name="metrics",
    help="Answer scrapes by Prometheus on the probe port; needs the extra metrics.",
    read=_switch,
    default=False,
    write=_written_switch,
)
LISTEN: Final = Setting[bool](
    name="listen",
    help="Hear of new jobs at once; off, they are found by polling alone.",
    read=_switch,
    default=_CORE.listen,
    write=_written_switch,
)
LISTEN_CONNECTION: Final = Setting[str | None](
    name="listen-connection",
    metavar="URL",
    help="A connection around a pooler, which cannot pass on news of jobs; for that alone.",
    read=_text,
    default=None,
    write=_written_optional,
    secret=True,
)
CLIENT_TIME: Final = Setting[bool](
    name="client-time",
    help="Judge what is due by this machine's clock, not the database's.",
    read=_switch,
    default=_CORE.use_client_time,
    write=_written_switch,
)
STRICT: Final = Setting[bool](
    name="strict",
    help="Refuse to start when a task cannot be loaded; with --once, exit 1 when a job failed.",
    read=_switch,
    default=_CORE.strict,
    write=_written_switch,
)
TASKS: Final = Setting[Path](
    name="tasks",
    metavar="DIR",
    help="The folder with the tasks.",
    read=_path,
    default=Path("tasks"),
    rebase=_beside,
)
APP: Final = Setting[str | None](
    name="app",
    metavar="MODULE:NAME",
    help="Take the tasks from a TaskRegistry instead of a folder.",
    read=_text,
    default=None,
    write=_written_optional,
)
CRONTAB: Final = Setting[Path | None](
    name="crontab",
    metavar="FILE",
    help="The crontab; without it, ./crontab if there is one.",
    read=_path,
    default=None,
    write=_written_optional,
    rebase=lambda value, folder: None if value is None else _beside(value, folder),
)
EXECUTABLE_ENV: Final = Setting[tuple[str, ...] | None](
    name="executable-env",
    metavar="NAME,...",
    help="Environment variables to pass to executable tasks: names, all, or minimal.",
    read=_variables,
    default=None,
    write=lambda value: "all" if value is None else ", ".join(value) or "minimal",
)
WATCH: Final = Setting[bool](
    name="watch",
    help="Read changed task files again between jobs.",
    read=_switch,
    default=False,
    write=_written_switch,
)
FORBIDDEN_FLAG: Final = Setting[tuple[str, ...]](
    name="forbidden-flag",
    metavar="FLAG",
    help="Leave jobs with this flag to others; may be repeated.",
    read=_names,
    default=(),
    write=_written_names,
)
LOG_LEVEL: Final = Setting[str](
    name="log-level",
    metavar="LEVEL",
    help="The least that is logged: debug, info, warning or error.",
    read=_choice(*LOG_LEVELS),
    default="info",
)
LOG_FORMAT: Final = Setting[str](
    name="log-format",
    metavar="FORMAT",
    help="How log lines are written: text, or json with one object a line.",
    read=_choice(*LOG_FORMATS),
    default="text",
)

TUI_READ_ONLY: Final = Setting[bool](
    name="tui.read-only",
    help="Change nothing, and let the server see to it.",
    read=_switch,
    default=False,
    write=_written_switch,
)
TUI_ENV: Final = Setting[str | None](
    name="tui.env",
    metavar="NAME",
    help="Show the name of the environment; in one called prod… every act is asked about.",
    read=_text,
    default=None,
    write=_written_optional,
)
TUI_INTERVAL: Final = Setting[timedelta](
    name="tui.interval",
    metavar="SPAN",
    help="How often to look.",
    read=_at_least(timedelta(milliseconds=100), _duration),
    default=timedelta(seconds=1),
    write=format_duration,
)
TUI_THEME: Final = Setting[str](
    name="tui.theme",
    metavar="NAME",
    help="The colours: gw-dark, gw-light, gw-contrast, or a theme of Textual's.",
    read=_text,
    default="gw-dark",
)
TUI_ASCII: Final = Setting[bool | None](
    name="tui.ascii",
    help="Draw with ASCII alone; by itself where the terminal knows no more.",
    read=_switch,
    default=None,
    write=lambda value: "" if value is None else _written_switch(value),
)
TUI_MOUSE: Final = Setting[bool](
    name="tui.mouse",
    help="Take clicks; off, the terminal selects text as it always does.",
    read=_switch,
    default=True,
    write=_written_switch,
)
TUI_PAYLOAD: Final = Setting[bool](
    name="tui.payload",
    help="Show payloads; off, they are not even fetched.",
    read=_switch,
    default=True,
    write=_written_switch,
)
TUI_BULK_CAP: Final = Setting[int](
    name="tui.bulk-cap",
    metavar="N",
    help="How many jobs can be marked at once.",
    read=_count(1, 1_000_000),
    default=10_000,
)
TUI_LOG_PAYLOADS: Final = Setting[str](
    name="tui.log-payloads",
    metavar="HOW",
    help="Payloads in the console's action log: whole, masked or none.",
    read=_choice("whole", "masked", "none"),
    default="whole",
)
TUI_KEYS: Final = Setting[Mapping[str, str]](
    name="tui.keys",
    metavar="COMMAND=KEY",
    help="Other keys for the console's commands; a table in the file.",
    read=_keys,
    default={},
    write=_written_keys,
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    CONNECTION,
    SCHEMA,
    PG_BIN,
    PREPARED_STATEMENTS,
    MAX_POOL_SIZE,
    JOBS,
    POLL_INTERVAL,
    PREFETCH,
    GRACE_PERIOD,
    RECOVER,
    HEARTBEAT_INTERVAL,
    SWEEP_INTERVAL,
    SWEEP_THRESHOLD,
    RECOVERY_DELAY,
    ORPHANS_AFTER,
    RESILIENT_FLAG,
    RESILIENT_MULTIPLIER,
    PROCESSES,
    MAX_JOBS,
    MAX_LIFETIME,
    MAX_RSS,
    PROBE_PORT,
    PROBE_HOST,
    METRICS,
    LISTEN,
    LISTEN_CONNECTION,
    CLIENT_TIME,
    STRICT,
    TASKS,
    APP,
    CRONTAB,
    EXECUTABLE_ENV,
    WATCH,
    FORBIDDEN_FLAG,
    LOG_LEVEL,
    LOG_FORMAT,
    TUI_READ_ONLY,
    TUI_ENV,
    TUI_INTERVAL,
    TUI_THEME,
    TUI_ASCII,
    TUI_MOUSE,
    TUI_PAYLOAD,
    TUI_BULK_CAP,
    TUI_LOG_PAYLOADS,
    TUI_KEYS,
)
"""Every setting, in the order the manual and `gw config show` list them."""

BY_NAME: Final[Mapping[str, Setting[Any]]] = {setting.name: setting for setting in SETTINGS}
TABLES: Final = frozenset(name.partition(".")[0] for name in BY_NAME if "." in name)


# -- which value counts ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where values may come from, strongest first; a flag that was not given is None."""

    flags: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    file: ConfigFile | None = None
    folder: Path = Path()
    """The current folder: a value from a file that lies there needs no other place to start from."""


def resolve(sources: Sources) -> Configuration:
    """Return every setting with the value that counts; raises `InvalidSettingError` naming place, value and remedy."""
    stored = checked_file(sources.file)
    entries = {setting.name: _resolve_one(setting, sources, stored) for setting in SETTINGS}
    configuration = Configuration(entries, None if sources.file is None else sources.file.path)
    followers = {
        setting.name: Resolved(setting, setting.follows(configuration), Origin("default"))
        for setting in SETTINGS
        if setting.follows is not None and configuration.origin(setting).kind == "default"
    }
    return replace(configuration, entries={**entries, **followers})


def _worker(configuration: Configuration) -> WorkerSettings:
    """Return the settings by which the spans that follow the threshold are known."""
    return WorkerSettings(sweep_threshold=configuration[SWEEP_THRESHOLD])


def _resolve_one(setting: Setting[Any], sources: Sources, stored: Mapping[str, object]) -> Resolved:
    given = sources.flags.get(setting.name)
    if given is not None and given != [] and given != ():
        return _read(setting, given, Origin("flag", setting.flag))
    for variable in setting.variables:
        # An empty variable counts as unset: that is how a container's environment says "nothing".
        if sources.environment.get(variable):
            return _read(setting, sources.environment[variable], Origin("environment", variable))
    if setting is CONNECTION and (naming := naming_pg_variable(sources.environment)):
        # The empty string leaves everything to libpq, which reads the variables itself.
        return Resolved(setting, "", Origin("environment", naming))
    if setting.name in stored and sources.file is not None:
        path = sources.file.path
        folder = None if path.parent == sources.folder else path.parent
        return _read(setting, stored[setting.name], Origin("file", str(path)), folder)
    return Resolved(setting, setting.default, Origin("default"))


def _read(setting: Setting[Any], raw: object, origin: Origin, folder: Path | None = None) -> Resolved:
    return Resolved(setting, setting.parse(raw, origin, folder), origin)


def naming_pg_variable(environment: Mapping[str, str]) -> str | None:
    """Return the first of libpq's variables that names a database, if one is set."""
    return next((name for name in NAMING_PG_VARIABLES if environment.get(name)), None)


def is_database_named(environment: Mapping[str, str]) -> bool:
    """Tell whether the environment names a database."""
    return any(environment.get(name) for name in (*CONNECTION.variables, *NAMING_PG_VARIABLES))


def checked_file(file: ConfigFile | None) -> Mapping[str, object]:
    """Return the file's values by setting; raises `InvalidSettingError` for a key nobody knows or one given twice."""
    if file is None:
        return {}
    stored: dict[str, object] = {}
    for key, raw in _flattened(file.values):
        name = key.replace("_", "-")
        if name not in BY_NAME:
            raise InvalidSettingError(f"{file.path}: the key {quoted(key)} is unknown; {_nearest(name)}")
        if name in stored:
            raise InvalidSettingError(f"{file.path}: the key {quoted(name)} stands there twice; keep one")
        stored[name] = raw
    return stored


def _flattened(values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the keys of the file, those of a table of ours with its name before them."""
    for key, raw in values.items():
        if key in TABLES and isinstance(raw, Mapping):
            yield from ((f"{key}.{inner}", each) for inner, each in raw.items())
        else:
            yield key, raw


def _nearest(name: str) -> str:
    close = get_close_matches(name, BY_NAME, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(BY_NAME)}"


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the `GW_…` variables that are no setting, most likely misspelt."""
    known = {variable for setting in SETTINGS for variable in setting.variables} | set(OTHER_VARIABLES)
    return sorted(name for name in environment if name.startswith("GW_") and name not in known)


OTHER_VARIABLES: Final = {
    "GW_CONFIG": "The configuration file, as --config.",
    "GW_DEBUG": "Show the traceback of an error, as --debug.",
}
"""Variables that are not settings: they are needed before settings are read, or do not belong into a file."""
