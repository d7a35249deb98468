"""The only writer to stderr: errors and notes in words, and the log of `gw run` as text or JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, BinaryIO, Final

from gw_cli.log_stream import LogStream
from gw_cli.output import json_string, json_text, to_json, wants_colour
from gw_cli.sanitize import indented, visible
from gw_core.operations import UNSAFE_TEXT

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
COLOURS: Final = {"debug": "\x1b[2m", "info": "\x1b[32m", "warning": "\x1b[33m", "error": "\x1b[31m"}
UNCOLOURED: Final = "\x1b[0m"
MAX_FRAMES: Final = 5

Meta = Mapping[str, object]
LogSink = Callable[[str, str, Meta | None], None]


class _ErrorOutput:
    """The sink of errors in this process."""

    sink: LogSink | None = None


_VOICE = _ErrorOutput()


# -- words -----------------------------------------------------------------------------------------------------------


def error(message: str) -> None:
    """Report an error in one line."""
    if _VOICE.sink is None:
        _say(f"gw: {indented(message)}")
    else:
        _VOICE.sink("error", message, None)


def speak_through(sink: Any) -> None:
    """From now on hand errors to a log's sink: who reads JSON lines shall find nothing else among them."""
    _VOICE.sink = sink


def note(message: str) -> None:
    """Say something worth knowing that is no error."""
    _say(indented(message))


def traceback_of(problem: BaseException) -> None:
    """Show where an error came from, for `--debug`."""
    import traceback

    lines = "".join(traceback.format_exception(problem)).splitlines()
    _say("\n".join(map(visible, lines)))


def _say(text: str) -> None:
    # An error about a closed stderr could not be written either.
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


# -- the log ---------------------------------------------------------------------------------------------------------


class _Sink:
    """Writes the messages of one scope that reach the level."""

    def __init__(self, stream: LogStream, level: str) -> None:
        self._stream = stream
        self._least = LEVELS[level]

    def __call__(self, level: str, message: str, meta: Meta | None) -> None:
        if LEVELS[level] >= self._least:
            self._stream.write(self._line(level, message, meta))

    def enabled(self, level: str) -> bool:
        """True when messages of this level are written."""
        return LEVELS[level] >= self._least

    def many(self, level: str, messages: Sequence[str]) -> None:
        """Write a batch with one write."""
        if messages and self.enabled(level):
            self._stream.write(self._lines(level, messages))

    def lost(self, count: int) -> str:
        """Return the line that reports how many lines were dropped."""
        return self._line("warning", f"Log lines dropped because the reader did not keep up: {count}", None)

    def _line(self, level: str, message: str, meta: Meta | None) -> str:
        raise NotImplementedError

    def _lines(self, level: str, messages: Sequence[str]) -> str:
        return "".join([self._line(level, message, None) for message in messages])


class TextSink(_Sink):
    """`[job(worker: task{id})] INFO: message`, the format of Graphile Worker (Node.js)."""

    def __init__(self, stream: LogStream, level: str, scope: Meta, *, colour: bool) -> None:
        super().__init__(stream, level)
        where = visible(_where(scope))
        self._prefixes = {each: f"[{where}] {_label(each, colour)}: " for each in LEVELS}

    def _line(self, level: str, message: str, meta: Meta | None) -> str:
        text = f"{self._prefixes[level]}{indented(message)}\n"
        cause = None if meta is None else meta.get("error")
        return text if not isinstance(cause, BaseException) else text + "".join(map(_frame_line, frames_of(cause)))

    def _lines(self, level: str, messages: Sequence[str]) -> str:
        prefix = self._prefixes[level]
        lines = [f"{prefix}{message}\n" for message in messages]
        text = "".join(lines)
        # One check of the whole batch; only the rare batch with something to escape is written line by line.
        if text.count("\n") == len(lines) and not UNSAFE_TEXT.search("".join(messages)):
            return text
        return "".join([f"{prefix}{indented(message)}\n" for message in messages])


class JsonSink(_Sink):
    """One object a line: `ts`, `level`, `message`, the scope's keys, and `error` with type, message and places."""

    def __init__(self, stream: LogStream, level: str, scope: Meta) -> None:
        super().__init__(stream, level)
        self._scope = {key: _plain(value) for key, value in scope.items() if value is not None}

    def _line(self, level: str, message: str, meta: Meta | None) -> str:
        entry: dict[str, object] = {"ts": datetime.now(UTC), "level": level, "message": message, **self._scope}
        for key, value in (meta or {}).items():
            if key not in entry:
                entry[key] = _error_fields(value) if isinstance(value, BaseException) else _plain(value)
        return to_json(entry) + "\n"

    def _lines(self, level: str, messages: Sequence[str]) -> str:
        # A batch shares everything but its messages, so that is written once.
        prefix, tail = self._line(level, _PLACE, None).split(f'"{_PLACE}"', 1)
        write = json_text if UNSAFE_TEXT.search("".join(messages)) else json_string
        return "".join([f"{prefix}{write(message)}{tail}" for message in messages])


_PLACE: Final = "where the message of a batch belongs"


def log_factory(
    *,
    level: str,
    log_format: str,
    raw: BinaryIO | None = None,
    colour: bool | None = None,
    stream: LogStream | None = None,
    process: int | None = None,
) -> Callable[[Meta], Any]:
    """Return what makes the sink of a scope: text or JSON lines, to stderr by default.

    With `process`, every line names its process.
    """
    stream = stream or log_stream(raw)
    which: Meta = {} if process is None else {"process": process}
    coloured = wants_colour(sys.stderr) if colour is None else colour

    def sink_of(scope: Meta) -> _Sink:
        if log_format == "json":
            return JsonSink(stream, level, {**which, **scope})
        return TextSink(stream, level, {**which, **scope}, colour=coloured)

    stream.say_lost = sink_of({"label": "core"}).lost
    return sink_of


def log_stream(raw: BinaryIO | None = None) -> LogStream:
    """Return the stream of the log; stderr by default."""
    return LogStream(_unbuffered_stderr() if raw is None else raw)


def _unbuffered_stderr() -> Any:
    buffer = sys.stderr.buffer
    return getattr(buffer, "raw", buffer)


def frames_of(problem: BaseException) -> list[str]:
    """Return where an error was raised, innermost first, without the frames of our own packages."""
    elsewhere = getattr(problem, "places", None)
    if isinstance(elsewhere, tuple):
        # Raised in the process of an isolated task, which sent its frames along.
        theirs = [_place(file, line, name) for file, line, name, module in elsewhere if not _is_ours(module)]
        return theirs[: -MAX_FRAMES - 1 : -1]
    places: list[str] = []
    frame: TracebackType | None = problem.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        if not _is_ours(frame.tb_frame.f_globals.get("__name__", "")):
            places.append(_place(code.co_filename, frame.tb_lineno, code.co_name))
        frame = frame.tb_next
    return places[: -MAX_FRAMES - 1 : -1]


def _place(file: str, line: int, name: str) -> str:
    return f"{_short(file)}:{line} in {name}"


def _is_ours(module: object) -> bool:
    return str(module).partition(".")[0] in ("gw_core", "gw_cli")


def _short(path: str) -> str:
    relative = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
    return visible(relative)


def _frame_line(place: str) -> str:
    return f"    at {place}\n"


def _where(scope: Meta) -> str:
    label = scope.get("label") or "core"
    if "process" in scope:
        label = f"{label}#{scope['process']}"
    thread, task, job = scope.get("thread"), scope.get("task_identifier"), scope.get("job_id")
    if thread is None and task is None:
        return str(label)
    inside = ": ".join(str(part) for part in (thread, f"{task}{{{job}}}" if task is not None else None) if part)
    return f"{label}({inside})"


def _label(level: str, colour: bool) -> str:
    return f"{COLOURS[level]}{level.upper()}{UNCOLOURED}" if colour else level.upper()


def _error_fields(problem: BaseException) -> dict[str, object]:
    try:
        message = str(problem)
    except Exception:  # noqa: BLE001 - user code's __str__; the log goes on
        message = ""
    return {"type": type(problem).__name__, "message": message, "frames": frames_of(problem)}


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | int | float | bool | datetime):
        return value
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - see above
        return f"({type(value).__name__})"
