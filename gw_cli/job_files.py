"""Read jobs from files: JSON lines or CSV, line by line, each error with its line number."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from gw_cli.arguments import STDIN, checked_json, point_in_time, whole_number
from gw_cli.sanitize import visible
from gw_core import JobKeyMode, JobSpec
from gw_core.errors import InvalidInputError

MAX_LINE_LENGTH: Final = 64 * 1024 * 1024
"""A longer line is rejected, so that a file of another kind is not read into memory whole."""

NUL: Final = b"\\u0000"
HAS_NUL: Final = "the payload contains \\u0000, which PostgreSQL cannot hold in a text; remove it"
NAMES: Final = ("task", "payload", "queue", "run_at", "max_attempts", "key", "key_mode", "priority", "flags")
"""What a line may say, in the words of `gw list --json`."""


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of JSON; the payload stays the text it is."""

    task: str | None = None
    payload: msgspec.Raw = msgspec.Raw()  # empty when the line has none; msgspec knows no union with it
    queue: str | None = None
    run_at: str | None = None
    max_attempts: int | None = None
    key: str | None = None
    key_mode: str | None = None
    priority: int | None = None
    flags: list[str] | None = None


MAX_FRAMES: Final = 10_000

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
    spec_of = _Specs(defaults).from_line
    for number, line in _csv(source) if as_csv else _json_lines(source):
        if type(line) is str:
            yield number, line
            continue
        try:
            yield number, spec_of(line)  # type: ignore[arg-type] # the other member of the union
        except InvalidInputError as error:
            yield number, str(error)


def job_bytes(spec: JobSpec) -> int:
    """Return how many bytes of payload a job from a file has."""
    return 0 if spec.payload is None else memoryview(spec.payload).nbytes


class _Specs:
    """Makes jobs of lines; those that differ in nothing but their payload are checked once."""

    def __init__(self, defaults: Mapping[str, Any]) -> None:
        self._defaults = defaults
        self._frames: dict[tuple[object, ...], JobSpec] = {}

    def from_line(self, line: _Line) -> JobSpec:
        """Return the job of a line; raises `InvalidInputError`."""
        payload = line.payload if memoryview(line.payload) else None
        if line.key is not None:
            return _spec(line, self._defaults, payload)
        flags = None if line.flags is None else tuple(line.flags)
        frame = (line.task, line.queue, line.run_at, line.max_attempts, line.priority, line.key_mode, flags)
        made = self._frames.get(frame)
        if made is None:
            made = self._noted(frame, _spec(line, self._defaults, None))
        return made.with_payload(payload)

    def _noted(self, frame: tuple[object, ...], spec: JobSpec) -> JobSpec:
        if len(self._frames) >= MAX_FRAMES:
            self._frames.clear()
        self._frames[frame] = spec
        return spec


def _spec(line: _Line, defaults: Mapping[str, Any], payload: msgspec.Raw | None) -> JobSpec:
    fields = {**defaults, "payload": payload}
    if line.task is not None:
        fields["task"] = line.task
    if "task" not in fields:
        raise InvalidInputError("it names no task; give one on the line, or one for all lines as TASK")
    if line.queue is not None:
        fields["queue_name"] = line.queue
    if line.run_at is not None:
        fields["run_at"] = point_in_time("run_at", line.run_at)
    if line.max_attempts is not None:
        fields["max_attempts"] = line.max_attempts
    if line.key is not None:
        fields["job_key"] = line.key
    if line.key_mode is not None:
        fields["job_key_mode"] = JobKeyMode.parse(line.key_mode)
    if line.priority is not None:
        fields["priority"] = line.priority
    if line.flags is not None:
        fields["flags"] = line.flags
    return JobSpec(**fields)


def _has_nul(payload: msgspec.Raw) -> bool:
    # Two backslashes are a backslash, and what follows them is plain text.
    return NUL in memoryview(payload).tobytes().replace(b"\\\\", b"")


# -- JSON lines ------------------------------------------------------------------------------------------------------


def _json_lines(source: BinaryIO) -> Iterator[tuple[int, _Line | str]]:
    decode = msgspec.json.Decoder(_Line).decode
    number = 0
    while text := source.readline(MAX_LINE_LENGTH + 1):
        number += 1
        if len(text) > MAX_LINE_LENGTH:
            raise InvalidInputError(f"line {number} is longer than {MAX_LINE_LENGTH} bytes; is this a file of jobs?")
        if number == 1:
            text = text.removeprefix(b"\xef\xbb\xbf")
        if text.isspace() or not text:
            continue
        try:
            line = decode(text)
            yield number, HAS_NUL if NUL in text and _has_nul(line.payload) else line
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield number, f"it is no job as JSON: {_gist(error)}"


def _gist(error: Exception) -> str:
    text = str(error)
    if text.startswith("Object contains unknown field"):
        return f"{text[:1].lower()}{text[1:]}; it may have {', '.join(NAMES)}"
    return f"{text[:1].lower()}{text[1:]}"


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
            yield number, f"it is no line of CSV: {error}"
            number = reader.line_num + 1
            continue
        if row is None:
            return
        if row:
            yield number, _from_cells(columns, row)
        number = reader.line_num + 1


def _decoded(source: BinaryIO) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: source.readline(MAX_LINE_LENGTH + 1), b""), 1):
        if len(line) > MAX_LINE_LENGTH:
            raise InvalidInputError(f"line {number} is longer than {MAX_LINE_LENGTH} bytes; is this a file of jobs?")
        try:
            yield (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).decode()
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
        return f"it has {len(row)} cells, and line 1 names {len(columns)} columns"
    cells: dict[str, Any] = {head: cell for head, cell in zip(columns, row, strict=True) if cell}
    try:
        if "payload" in cells:
            cells["payload"] = payload = msgspec.Raw(checked_json(cells["payload"], "the payload"))
            if _has_nul(payload):
                return HAS_NUL
        for name in ("max_attempts", "priority"):
            if name in cells:
                cells[name] = whole_number(name, cells[name])
    except InvalidInputError as error:
        return str(error)
    if "flags" in cells:
        cells["flags"] = [each for each in cells["flags"].split(",") if each]
    return _Line(**cells)
