"""Read jobs from files: JSON lines or CSV, line by line, each error with its line number."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from gw_cli.arguments import STDIN, checked_json, duration, expiry, point_in_time, whole_number
from gw_cli.sanitize import uncapitalized, visible
from gw_core import JobSpec
from gw_core.errors import InvalidInputError

MAX_LINE_LENGTH: Final = 64 * 1024 * 1024
"""A longer line is rejected, so that a file of another kind is not read into memory whole."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
NUL: Final = b"\\u0000"
HAS_NUL: Final = "the payload contains \\u0000, which PostgreSQL cannot hold in a text; remove it"


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line, with the fields of `JobSpec`; the payload stays the text it is."""

    task: str | None = None
    payload: msgspec.Raw = msgspec.Raw()  # empty when the line has none; msgspec knows no union with it
    queue_name: str | None = None
    run_at: str | None = None
    max_attempts: int | None = None
    job_key: str | None = None
    job_key_mode: str | None = None
    priority: int | None = None
    flags: list[str] | None = None
    after: list[int] | None = None
    on_failure: str | None = None
    unique_for: str | None = None
    expires_at: str | None = None


_FIELDS: Final = dict(zip(_Line.__struct_encode_fields__, _Line.__struct_fields__, strict=True))
NAMES: Final = tuple(_FIELDS)
"""What a line may say."""

Entry = tuple[int, JobSpec | str]
"""The number of a line, with its job or the reason why it is invalid."""


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open the file, or stdin for `-`."""
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).expanduser().open("rb")
    except OSError as error:
        raise InvalidInputError(f"the file '{visible(path)}' cannot be read: {error.strerror}") from error
    with file:
        yield file


def read(source: BinaryIO, *, as_csv: bool, defaults: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield what the lines say; `defaults` are the fields of `JobSpec` that a line may leave out."""
    for number, line in _csv(source) if as_csv else _json_lines(source):
        if type(line) is str:
            yield number, line
            continue
        try:
            yield number, _spec(line, defaults)  # type: ignore[arg-type] # the other member of the union
        except InvalidInputError as error:
            yield number, str(error)


def job_bytes(spec: JobSpec) -> int:
    """Return how many bytes of payload a job from a file has."""
    return 0 if spec.payload is None else memoryview(spec.payload).nbytes


def _spec(line: _Line, defaults: Mapping[str, Any]) -> JobSpec:
    given = {name: value for name in _FIELDS.values() if (value := getattr(line, name)) is not None}
    fields = {**defaults, **given, "payload": line.payload if memoryview(line.payload) else None}
    if "task" not in fields:
        raise InvalidInputError("it names no task; give one on the line, or one for all lines as TASK")
    if line.run_at is not None:
        fields["run_at"] = point_in_time("run_at", line.run_at)
    if line.unique_for is not None:
        fields["unique_for"] = duration("unique_for", line.unique_for)
    if line.expires_at is not None:
        fields["expires_at"] = expiry("expires_at", line.expires_at)
    return JobSpec(**fields)


def _lines(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(iter(lambda: source.readline(MAX_LINE_LENGTH + 1), b""), 1):
        if len(line) > MAX_LINE_LENGTH:
            raise InvalidInputError(f"line {number} is longer than {MAX_LINE_LENGTH} bytes; is this a file of jobs?")
        yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def _has_nul(payload: msgspec.Raw) -> bool:
    # Two backslashes are a backslash, and what follows them is plain text.
    return NUL in memoryview(payload).tobytes().replace(b"\\\\", b"")


# -- JSON lines ------------------------------------------------------------------------------------------------------


def _json_lines(source: BinaryIO) -> Iterator[tuple[int, _Line | str]]:
    decode = msgspec.json.Decoder(_Line).decode
    for number, text in _lines(source):
        if text.isspace() or not text:
            continue
        try:
            line = decode(text)
            yield number, HAS_NUL if NUL in text and _has_nul(line.payload) else line
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield number, f"it is not a job as JSON: {_gist(error)}"


def _gist(error: Exception) -> str:
    text = str(error)
    if text.startswith("Object contains unknown field"):
        return f"{uncapitalized(text)}; it may have {', '.join(NAMES)}"
    return uncapitalized(text)


# -- CSV -------------------------------------------------------------------------------------------------------------


def _csv(source: BinaryIO) -> Iterator[tuple[int, _Line | str]]:
    csv.field_size_limit(MAX_LINE_LENGTH)
    reader = csv.reader(_decoded(source), strict=True)
    columns = _columns(next(reader, None))
    number = reader.line_num + 1
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield number, f"it is not a line of CSV: {error}"
            number = reader.line_num + 1
            continue
        if row is None:
            return
        if row:
            yield number, _from_cells(columns, row)
        number = reader.line_num + 1


def _decoded(source: BinaryIO) -> Iterator[str]:
    for number, line in _lines(source):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"line {number} is not UTF-8: byte {error.start + 1} does not fit") from None


def _columns(row: list[str] | None) -> list[str]:
    columns = [each.strip() for each in row or ()]
    wrong = [each for each in columns if each not in NAMES]
    if not columns or wrong or len(set(columns)) < len(columns):
        named = f", not '{visible(wrong[0])}'" if wrong else ""
        raise InvalidInputError(f"line 1 must name the columns, each once, from {', '.join(NAMES)}{named}")
    return columns


def _from_cells(columns: list[str], row: list[str]) -> _Line | str:
    if len(row) != len(columns):
        return f"the number of its cells is {len(row)}, and that of the columns in line 1 is {len(columns)}"
    cells: dict[str, Any] = {head: cell for head, cell in zip(columns, row, strict=True) if cell}
    try:
        if "payload" in cells:
            cells["payload"] = payload = msgspec.Raw(checked_json(cells["payload"], "the payload"))
            if _has_nul(payload):
                return HAS_NUL
        for name in ("max_attempts", "priority"):
            if name in cells:
                cells[name] = whole_number(name, cells[name])
        if "after" in cells:
            cells["after"] = [whole_number("after", each.strip()) for each in cells["after"].split(",")]
    except InvalidInputError as error:
        return str(error)
    if "flags" in cells:
        cells["flags"] = [each for each in cells["flags"].split(",") if each]
    return _Line(**{_FIELDS[name]: value for name, value in cells.items()})
