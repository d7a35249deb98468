"""The only writer to stdout: tables on a terminal, tab-separated lines in a pipe, JSON when asked for."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from gw_cli.sanitize import quoted, visible
from gw_core.errors import GraphileWorkerError, InvalidInputError
from gw_core.front_ends import UNSAFE_TEXT

GAP: Final = "  "
NARROWEST: Final = 12
NO_LIMIT: Final = 1_000_000
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"

Record = Mapping[str, object]

json_string: Callable[[str], str] = encode_basestring
"""Writes a text as a JSON string; what could steer a terminal is still in it, see `json_text`."""


class JsonText(msgspec.Struct, frozen=True):
    """JSON text from the database, handed on as it is: numbers keep every digit."""

    text: str

    def __repr__(self) -> str:
        return "JsonText(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class Column(msgspec.Struct, frozen=True):
    """One value of a record: its key in JSON and lines, and its column in a table on a terminal.

    `find` is the attribute that holds the value, or a function that returns it; without it, the attribute named by
    the key. An attribute of None is None. Without a `title` the value is not in a table; one that is `shown` is only
    there.
    A column that `shrinks` is cut when the terminal is narrow; one with a lower `rank` is left out first when that is
    not enough.
    """

    key: str
    title: str = ""
    find: str | Callable[[Any], object] = ""
    right: bool = False
    shrinks: bool = False
    rank: int = 9
    shown: bool = False

    def value(self, source: object) -> object:
        """Return the value that a source has for this column; a mapping has it under the key."""
        if isinstance(source, Mapping):
            return source[self.key]
        if callable(self.find):
            return self.find(source)
        for name in (self.find or self.key).split("."):
            source = None if source is None else getattr(source, name)
        return source


class Shape(msgspec.Struct, frozen=True):
    """How values of one kind are printed; `order` has the keys of a table, where it differs from that of the data."""

    all: tuple[Column, ...]
    order: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that JSON and lines promise."""
        return tuple(each.key for each in self.all if not each.shown)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a table."""
        titled = {each.key: each for each in self.all if each.title}
        return tuple(titled[key] for key in self.order.split() or titled)

    def record(self, source: object) -> dict[str, object]:
        """Return what JSON and lines have of a value."""
        return {each.key: each.value(source) for each in self.all if not each.shown}

    def records(self, sources: Iterable[object]) -> list[dict[str, object]]:
        """Return the records of values."""
        return [self.record(each) for each in sources]

    def row(self, source: object) -> dict[str, object]:
        """Return the record with what a table shows in other words."""
        return {each.key: each.value(source) for each in self.all}


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How records are printed: as `json`, `table` or `tsv`, or as it suits stdout, and which of the columns."""

    form: str = ""
    columns: Sequence[str] = ()
    is_wide: bool = False

    def show(self, values: Iterable[object], shape: Shape, *, without: Collection[str] = ()) -> None:
        """Write values as records of their shape, `without` some of its keys."""
        rows: Sequence[Record] = [shape.row(each) for each in values]
        columns: Sequence[Column] = shape.columns
        keys: Sequence[str] = [each for each in shape.keys if each not in without]
        if self.columns:
            keys, columns = self._chosen(keys), [_column(columns, each) for each in self._chosen(keys)]
        form = self.form or ("table" if is_terminal(sys.stdout) else "tsv")
        shards = _shards.get()
        if shards is not None:
            rows, columns = shards.labelled(rows), (Column(SHARD, "SHARD"), *columns)
            keys = (SHARD, *keys)
        if form == "json":
            chosen = [{key: row[key] for key in keys} for row in rows]
            if shards is None:
                _write(_json_lines(chosen))
            else:
                shards.collect(chosen)
        elif form == "table":
            width = NO_LIMIT if self.is_wide else _terminal_width()
            _write(table(rows, columns, width=width, bold=wants_colour(sys.stdout), keeps_empty=bool(self.columns)))
        else:
            _write(tab_separated(rows, keys, with_header=shards is None or shards.begins()))

    def _chosen(self, keys: Sequence[str]) -> Sequence[str]:
        unknown = [each for each in self.columns if each not in keys]
        if unknown:
            raise InvalidInputError(f"--columns: unknown column {quoted(unknown[0])}; columns are {', '.join(keys)}")
        return self.columns


SHARD: Final = "shard"
"""The key of the database that a record comes from, if a command reads several."""


class ShardOutput(msgspec.Struct):
    """The output of a command that works on several shards, one after the other."""

    name: str = ""
    has_begun: bool = False
    collected: list[Record] | None = None
    """The records printed as JSON so far, for one array at the end."""
    has_open_array: bool = False

    @contextmanager
    def labelled_as(self, name: str) -> Iterator[None]:
        """Label what the block prints with the name of a shard."""
        self.name = name
        try:
            yield
        finally:
            self.name = ""

    def begins(self) -> bool:
        """Return whether nothing was printed so far; from now on, something was."""
        has_begun, self.has_begun = self.has_begun, True
        return not has_begun

    def collect(self, rows: Iterable[Record]) -> None:
        """Keep records to be printed as JSON."""
        self.collected = [*(self.collected or ()), *rows]

    def labelled(self, rows: Iterable[Record]) -> list[Record]:
        """Return records with the name of the current shard."""
        return [{SHARD: self.name, **row} for row in rows]


_shards: ContextVar[ShardOutput | None] = ContextVar("shards", default=None)


@contextmanager
def of_shards() -> Iterator[ShardOutput]:
    """Print the records of the block with the names of their shards; all JSON becomes one array."""
    shards = ShardOutput()
    token = _shards.set(shards)
    try:
        yield shards
    finally:
        _shards.reset(token)
        if shards.has_open_array:
            line("]")
    if shards.collected is not None and not shards.has_open_array:
        _write(_json_lines(shards.collected))


def current_shard() -> str:
    """Return the name of the shard that a command works on, if there are several; else an empty text."""
    shards = _shards.get()
    return "" if shards is None else shards.name


def record(value: Record) -> None:
    """Write one record as JSON."""
    shards = _shards.get()
    if shards is None:
        line(to_json(value))
    else:
        shards.collect(shards.labelled([value]))


def heading() -> None:
    """Write the name of the shard that the following lines are about, if there are several."""
    if (shards := _shards.get()) is not None:
        line(("" if shards.begins() else "\n") + f"Shard {shards.name}")


class RecordStream:
    """Records that are printed as soon as they are known, as JSON or as lines; those of shards become one list."""

    def __init__(self, keys: Sequence[str], *, as_json: bool) -> None:
        self._keys = keys
        self._as_json = as_json
        self._has_begun = False

    def write(self, value: Record) -> None:
        """Write a record."""
        shards = _shards.get()
        keys = self._keys if shards is None else (SHARD, *self._keys)
        values = value if shards is None else {SHARD: shards.name, **value}
        begins = not self._has_begun if shards is None else shards.begins()
        if self._as_json:
            script(("[" if begins else ",") + to_json({key: values[key] for key in keys}))
            if shards is not None:
                shards.has_open_array = True
        else:
            script("".join(tab_separated([values], keys, with_header=begins)))
        self._has_begun = True

    def end(self) -> None:
        """Close the list."""
        shards = _shards.get()
        if not self._as_json:
            return
        if shards is None:
            line("]" if self._has_begun else "[]")
        else:
            shards.collect([])


_print_record = record
"""The same, for functions that have a parameter of this name."""


class BrokenOutput(Exception):  # noqa: N818 - an event; a reader such as `head` that exits early is not an error
    """The reader closed our output. Not an `OSError`, so that a command does not confuse it with its own files'."""


# -- what commands call ----------------------------------------------------------------------------------------------


def line(text: str) -> None:
    """Write one line of ours; data inside it has been made visible by the caller.

    It is flushed: Python keeps what is written to a pipe, and a command may then run for days.
    """
    _write((text, "\n"), flush=True)


def script(text: str) -> None:
    """Write text that another program is to read as it is, such as SQL."""
    _write((text,) if text.endswith("\n") else (text, "\n"))


def answer(sentence: str, *, plain: str, record: Record, as_json: bool) -> None:
    """Print what a command did: a message on a terminal, the bare value in a pipe, an object with `--json`.

    The name of the shard stands before it, if there are several.
    """
    shard = current_shard()
    if as_json:
        _print_record(record)
    elif is_terminal(sys.stdout):
        line(visible(f"{shard}: {sentence}" if shard else sentence))
    else:
        line(f"{shard}\t{visible(plain)}" if shard else visible(plain))


def records(values: Iterable[object], shape: Shape, *, as_json: bool, without: Collection[str] = ()) -> None:
    """Write values as records of their shape: as JSON, or as it suits stdout."""
    Layout(form="json" if as_json else "").show(values, shape, without=without)


def pass_on(lines: bytes) -> None:
    """Write the output of a child process unchanged; drop it when the reader is gone."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stdout.buffer.write(lines)
        sys.stdout.buffer.flush()


def flush() -> None:
    """Hand everything to the reader; raises `BrokenOutput` when there is none left."""
    _write((), flush=True)


def let_go() -> None:
    """Forget what could not be written, so that the interpreter does not try again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def stand_in_for_closed_streams() -> None:
    """Give the process a stdout and stderr that lead nowhere when it was started without.

    Tasks can then print as usual, but what a command prints is an error: its caller would take it for an empty result.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w")  # noqa: SIM115 - stays open as long as the process lives
            setattr(sys, name, nowhere)
            _STAND_INS.append(nowhere)


_STAND_INS: Final[list[TextIO]] = []


def _write(texts: Iterable[str], *, flush: bool = False) -> None:
    if sys.stdout in _STAND_INS and texts:
        raise GraphileWorkerError("stdout is closed, so the output was lost")
    try:
        sys.stdout.writelines(texts)
        if flush:
            sys.stdout.flush()
    except BrokenPipeError:
        raise BrokenOutput from None
    except UnicodeEncodeError as error:
        raise GraphileWorkerError(
            f"stdout takes {sys.stdout.encoding} only, which lacks {error.object[error.start : error.end]!a}; "
            "set PYTHONUTF8=1 or a UTF-8 locale"
        ) from None


def is_terminal(stream: TextIO) -> bool:
    """True when a person reads the stream."""
    return stream.isatty()


def wants_colour(stream: TextIO) -> bool:
    """True for a terminal that shows colours, unless `NO_COLOR` is set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# -- values ----------------------------------------------------------------------------------------------------------


def cell(value: object) -> str:
    """Return a value as a table or a line shows it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case timedelta():
            return f"{value.total_seconds():g}s"
        case JsonText():
            return value.text
        case list() | tuple():
            return ",".join(cell(each) for each in value)
        case _:
            return str(value)


def to_json(value: object) -> str:
    """Return a value as JSON on one line, with every character that could steer a terminal escaped."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case JsonText():
            return _json_escaped(value.text)
        case datetime():
            return json_text(value.astimezone(UTC).isoformat().replace("+00:00", "Z"))
        case timedelta():
            return repr(value.total_seconds())
        case Mapping():
            return "{" + ", ".join(f"{json_text(str(key))}: {to_json(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(to_json, value)) + "]"
        case str() | Path():
            return json_text(str(value))
        case _:
            raise TypeError(f"cannot write {type(value).__name__} as JSON")


def json_text(text: str) -> str:
    """Return a text as a JSON string, readable but harmless."""
    return re.sub(UNSAFE_TEXT, _json_escape, json_string(text))


def _json_escaped(text: str) -> str:
    # Line breaks and tabs stand between tokens only, where a space means the same; what is left stands in strings.
    return re.sub(UNSAFE_TEXT, _json_escape, text.replace("\n", " ").replace("\r", " ").replace("\t", " "))


def _json_escape(match: object) -> str:
    units = str(match[0]).encode("utf-16-be", "surrogatepass")  # type: ignore[index]
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


# -- shapes ----------------------------------------------------------------------------------------------------------


def _json_lines(rows: Sequence[Record]) -> Iterable[str]:
    """One array, one record a line: a program reads it whole, a person finds the line."""
    if not rows:
        yield "[]\n"
        return
    for number, row in enumerate(rows):
        yield ("[" if number == 0 else ",\n ") + to_json(row)
    yield "]\n"


def tab_separated(rows: Iterable[Record], keys: Sequence[str], *, with_header: bool = True) -> Iterable[str]:
    if with_header:
        yield "\t".join(keys) + "\n"
    for row in rows:
        # The backslash is doubled, so that an escape differs from the same characters in the data.
        yield "\t".join(visible(cell(row.get(key)).replace("\\", "\\\\")) for key in keys) + "\n"


def table(
    rows: Sequence[Record], columns: Sequence[Column], *, width: int, bold: bool = False, keeps_empty: bool = False
) -> Iterable[str]:
    """Yield the lines of a table no wider than `width`, its columns in the given order; nothing for no rows."""
    if not rows:
        return
    cells = {column.key: [visible(cell(row.get(column.key))) for row in rows] for column in columns}
    filled = [column for column in columns if keeps_empty or any(cells[column.key])]
    widths = _fit(filled, cells, width)
    shown = [column for column in filled if column.key in widths]
    head = GAP.join(_padded(column.title, widths[column.key], column.right) for column in shown).rstrip()
    yield f"{BOLD}{head}{PLAIN}\n" if bold else f"{head}\n"
    for number in range(len(rows)):
        parts = (_padded(cells[column.key][number], widths[column.key], column.right) for column in shown)
        yield GAP.join(parts).rstrip() + "\n"


def _fit(columns: Sequence[Column], cells: Mapping[str, Sequence[str]], width: int) -> dict[str, int]:
    """Return the width of each column that is shown."""
    widths = {each.key: max(_width(each.title), *map(_width, cells[each.key])) for each in columns}
    flexible = [each.key for each in columns if each.shrinks]
    least = {key: min(width_, NARROWEST) if key in flexible else width_ for key, width_ in widths.items()}
    for column in sorted(columns, key=lambda each: each.rank):
        if _total(least) <= width or len(least) == 1:
            break
        del least[column.key], widths[column.key]
    while _total(widths) > width:
        widest = max((key for key in flexible if key in widths), key=lambda key: widths[key] - least[key], default=None)
        if widest is None or widths[widest] <= least[widest]:
            break
        widths[widest] -= 1
    return widths


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _column(columns: Sequence[Column], key: str) -> Column:
    """Return the column of a key, which a table may show in other words."""
    known = (each for each in columns if each.key in (f"{key}_shown", key))
    return next(known, Column(key, key.upper().replace("_", " "), shrinks=True))


def _terminal_width() -> int:
    """Return the width of the terminal, also that behind a pager; without any, nothing is cut."""
    if os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        with suppress(OSError, ValueError, AttributeError):
            return os.get_terminal_size(stream.fileno()).columns
    return NO_LIMIT


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # late: only wide characters need it

    return cell_len(text)


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * max(0, width - _width(text))
    if _width(text) > width:
        text, space = _cut(text, width), ""
    return space + text if right else text + space


def _cut(text: str, width: int) -> str:
    if text.isascii():
        return text[: width - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip() + "…"
