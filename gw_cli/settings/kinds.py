"""The kinds of values that settings have: how each is read, written and described."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from gw_cli.cpus import usable_processors
from gw_core.front_ends import format_duration, parse_duration

EMBEDDED: Final = "embedded:"
"""The connection to PostgreSQL that gw runs."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Kind(msgspec.Struct, Generic[T_co], frozen=True, kw_only=True):
    """One kind of value.

    `read` returns the value of a text or a TOML value; it raises `ValueError` with what to write instead.
    `write` returns the text that reads as the value, and an empty text for None.
    `relative` resolves a relative value against a folder.
    """

    read: Callable[[object], T_co]
    write: Callable[[Any], str] = lambda value: "" if value is None else str(value)
    metavar: str = ""
    schema: Mapping[str, object] = msgspec.field(default_factory=lambda: {"type": "string"})
    """The JSON Schema of the value in a file."""
    completion: str = ""
    """What completes it in a shell: words, or `files`."""
    relative: Callable[[Any, Path], T_co] | None = None

    @property
    def is_switch(self) -> bool:
        """Whether its option has no value, only a positive and a negative form."""
        return self.schema.get("type") == "boolean"

    @property
    def is_list(self) -> bool:
        """Whether its option can be repeated."""
        return self.schema.get("type") == "array"


_TOML_TYPES: Final = {
    str: "a text",
    bool: "a boolean",
    int: "a whole number",
    float: "a number with a fraction",
    list: "a list",
    dict: "a table",
    datetime: "a date with a time",
    date: "a date",
    time: "a time",
}


def type_name(value: object) -> str:
    """Return how a message names the type of a TOML value."""
    return _TOML_TYPES[type(value)]


# -- text ------------------------------------------------------------------------------------------------------------


def _read_text(raw: object) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError("give a text that is not empty")
    return raw


def _read_path(raw: object) -> Path:
    return Path(_read_text(raw)).expanduser()


def _resolve_embedded(conninfo: str, folder: Path) -> str:
    """Resolve the data folder of `embedded:` against the file's folder, so that it does not depend on the shell's."""
    if not conninfo.startswith(EMBEDDED):
        return conninfo
    location = conninfo.removeprefix(EMBEDDED)
    if location.startswith("//") and location[2:3] not in ("", "/"):
        return conninfo  # names a host, which gw_core rejects with its own message
    return f"{EMBEDDED}{folder / Path(location.removeprefix('//') or '.gw/postgres').expanduser()}"


def text(metavar: str, *, completion: str = "") -> Kind[str]:
    """Return the kind of a text that is not empty."""
    return Kind(read=_read_text, metavar=metavar, completion=completion)


def path(metavar: str) -> Kind[Path]:
    """Return the kind of a path."""
    return Kind(read=_read_path, metavar=metavar, completion="files", relative=lambda value, folder: folder / value)


def choice(metavar: str, *choices: str) -> Kind[str]:
    """Return the kind of a text that is one of `choices`."""

    def read(raw: object) -> str:
        if raw not in choices:
            raise ValueError(f"give one of {', '.join(choices)}")
        return str(raw)

    return Kind(read=read, metavar=metavar, schema={"enum": list(choices)}, completion=" ".join(choices))


URL: Final = Kind(read=_read_text, metavar="URL", relative=_resolve_embedded)


# -- numbers ---------------------------------------------------------------------------------------------------------


def _read_count(smallest: int, largest: int) -> Callable[[object], int]:
    def read(raw: object) -> int:
        number = raw if isinstance(raw, int) and not isinstance(raw, bool) else None
        if isinstance(raw, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", raw):
            number = int(raw)
        if number is None or not smallest <= number <= largest:
            raise ValueError(f"give a whole number from {smallest} to {largest}")
        return number

    return read


def count(smallest: int, largest: int, metavar: str = "N") -> Kind[int]:
    """Return the kind of a whole number in a range."""
    schema = {"type": "integer", "minimum": smallest, "maximum": largest}
    return Kind(read=_read_count(smallest, largest), metavar=metavar, schema=schema)


def _read_processes(raw: object) -> int:
    if raw == "auto":
        return usable_processors()
    try:
        return _read_count(1, 1000)(raw)
    except ValueError:
        raise ValueError("give a whole number from 1 to 1000, or auto") from None


def _read_factor(raw: object) -> float:
    number = float(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None
    if isinstance(raw, str) and re.fullmatch(r"[0-9]{1,7}([.][0-9]{1,6})?", raw):
        number = float(raw)
    if number is None or not 1 <= number <= 1_000_000:
        raise ValueError("give a number from 1 to 1000000")
    return number


def _read_size(raw: object) -> int:
    match = re.fullmatch(r"([0-9]{1,12})([KMGT]?)(?:i?B)?", str(raw).strip()) if isinstance(raw, str | int) else None
    if match is None or isinstance(raw, bool) or int(match[1]) < 1:
        raise ValueError("give a size like 512M or 2G, or a number of bytes")
    return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


PROCESS_COUNT: Final = Kind(
    read=_read_processes,
    metavar="N",
    schema={"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1000}, {"const": "auto"}]},
    completion="auto",
)
FACTOR: Final = Kind(
    read=_read_factor,
    write=lambda value: f"{value:g}",
    metavar="N",
    schema={"type": "number", "minimum": 1, "maximum": 1_000_000},
)
SIZE: Final = Kind(read=_read_size, metavar="SIZE", schema={"type": ["integer", "string"]})


# -- switches --------------------------------------------------------------------------------------------------------


def _read_switch(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    word = raw.lower() if isinstance(raw, str) else ""
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError("give true or false")


def _write_switch(value: bool | None) -> str:
    return "" if value is None else str(value).lower()


SWITCH: Final = Kind(read=_read_switch, write=_write_switch, schema={"type": "boolean"})


# -- durations -------------------------------------------------------------------------------------------------------


def _read_duration(raw: object) -> timedelta:
    try:
        value: timedelta = parse_duration(_read_text(raw))
    except ValueError:
        raise ValueError("give a duration like 90s, 5m, 1h30m, 250ms or 2d") from None
    return value


def _read_duration_or_milliseconds(raw: object) -> timedelta:
    # Graphile Worker's poll interval is a number of milliseconds, so `--poll-interval 500` keeps working.
    if isinstance(raw, int) and not isinstance(raw, bool):
        return timedelta(milliseconds=min(raw, 10**12))
    if isinstance(raw, str) and re.fullmatch(r"[0-9]{1,12}", raw):
        return timedelta(milliseconds=int(raw))
    return _read_duration(raw)


def _write_duration(value: timedelta | None) -> str:
    return "" if value is None else format_duration(value)


def duration(minimum: timedelta = timedelta(0), *, milliseconds: bool = False) -> Kind[timedelta]:
    """Return the kind of a duration of at least `minimum`; with `milliseconds` a bare number counts as those."""
    read_any = _read_duration_or_milliseconds if milliseconds else _read_duration

    def read(raw: object) -> timedelta:
        value = read_any(raw)
        if value < minimum:
            raise ValueError(f"give at least {format_duration(minimum)}")
        return value

    schema = {"type": ["string", "integer"] if milliseconds else "string"}
    return Kind(read=read, write=_write_duration, metavar="DURATION", schema=schema)


# -- several values --------------------------------------------------------------------------------------------------


def _read_names(raw: object) -> tuple[str, ...]:
    parts: Sequence[object] = raw.split(",") if isinstance(raw, str) else raw if isinstance(raw, list | tuple) else ()
    names = tuple(part.strip() for part in parts if isinstance(part, str))
    if not parts or len(names) != len(parts) or not all(names):
        raise ValueError("give names, none of them empty")
    return names


_TARGET_SEPARATOR: Final = re.compile(r",(?=\s*[a-z]+:)")
"""A comma separates targets only before a kind: names of tasks and queues may have commas too."""


def _read_targets(raw: object) -> tuple[str, ...]:
    parts: Sequence[object] = raw if isinstance(raw, list | tuple) else [raw]
    texts = [part for part in parts if isinstance(part, str) and part]
    if not texts or len(texts) != len(parts):
        raise ValueError("give tasks and queues, such as task:mail,queue:billing")
    return tuple(target.strip() for text in texts for target in _TARGET_SEPARATOR.split(text))


def _read_variables(raw: object) -> tuple[str, ...] | None:
    if raw in ("all", "minimal"):
        return None if raw == "all" else ()
    try:
        names = _read_names(raw)
    except ValueError:
        names = ("",)
    if not all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in names):
        raise ValueError("give names of variables, or all, or minimal")
    return names


def _read_keys(raw: object) -> Mapping[str, str]:
    if isinstance(raw, str):
        pairs = [part.partition("=") for part in raw.split(",")]
        raw = {name.strip(): key.strip() for name, _, key in pairs}
    if not isinstance(raw, Mapping) or not all(isinstance(key, str) and key.split() for key in raw.values()):
        raise ValueError("give each command its key, like retry=R,quit=ctrl+c")
    return {str(name).replace("-", "_"): str(key) for name, key in raw.items()}


_SHARD_SEPARATOR: Final = re.compile(r"[;\n]|,(?=\s*[A-Za-z0-9_-]+=)")
"""A comma separates shards only before a name: the hosts of a connection string have commas between them too."""


def _read_shards(raw: object) -> Mapping[str, str]:
    parts: Sequence[object] = (
        _SHARD_SEPARATOR.split(raw) if isinstance(raw, str) else raw if isinstance(raw, list) else ()
    )
    pairs = [part.strip().partition("=") if isinstance(part, str) else ("", "", "") for part in parts if part != ""]
    shards = {name: connection for name, _, connection in pairs}
    is_valid = all(re.fullmatch(r"[A-Za-z0-9_-]+", name) and connection for name, connection in shards.items())
    if not (pairs or raw == []) or len(shards) != len(pairs) or not is_valid:
        raise ValueError("give each database once, as NAME=URL, or with --shard by the name of a configured one")
    return shards


_NAMES_SCHEMA: Final = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}

NAMES: Final = Kind(read=_read_names, write=", ".join, metavar="FLAG", schema=_NAMES_SCHEMA)
TARGETS: Final = Kind(read=_read_targets, write=", ".join, metavar="KIND:NAME", schema=_NAMES_SCHEMA)
REFERENCES: Final = Kind(read=_read_names, write=", ".join, metavar="MODULE:NAME", schema=_NAMES_SCHEMA)
SHARDS: Final = Kind(
    read=_read_shards,
    write=", ".join,
    metavar="NAME[=URL]",
    schema=_NAMES_SCHEMA,
    relative=lambda shards, folder: {name: _resolve_embedded(each, folder) for name, each in shards.items()},
)
VARIABLES: Final = Kind(
    read=_read_variables,
    write=lambda value: "all" if value is None else ", ".join(value) or "minimal",
    metavar="NAME,...",
    schema={"anyOf": [_NAMES_SCHEMA, {"type": "string"}]},
    completion="all minimal",
)
KEYS: Final = Kind(
    read=_read_keys,
    write=lambda value: ",".join(f"{name}={key}" for name, key in value.items()),
    metavar="COMMAND=KEY",
    schema={"type": "object", "additionalProperties": {"type": "string"}},
)
