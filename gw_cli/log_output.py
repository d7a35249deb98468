"""The log of `gw run`: every record of `logging`, gw's own and the application's, as text or JSON on stderr."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import repeat
from traceback import walk_tb
from typing import Any, BinaryIO, Final

from gw_cli.log_stream import LogStream
from gw_cli.output import to_json, wants_colour
from gw_cli.sanitize import indented, visible
from gw_core.front_ends import LOGGER_NAME, add_current_job, path_from_here, record_fields

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
COLOURS: Final = {"debug": "\x1b[2m", "info": "\x1b[32m", "warning": "\x1b[33m", "error": "\x1b[31m"}
UNCOLOURED: Final = "\x1b[0m"
MAX_FRAMES: Final = 5
MAX_CHAIN: Final = 10
"""Errors that one record shows: causes, contexts and members of groups."""
MAX_ERROR_TEXT: Final = 2_000


def configure_logging(
    *,
    level: str,
    log_format: str,
    log_time: str = "auto",
    process: int | None = None,
    stream: LogStream | None = None,
    colour: bool | None = None,
) -> logging.Handler:
    """Send the records of all loggers that reach `level` to stderr, and return the handler.

    The handler is the root logger's, so an application that configures `logging` replaces it.
    """
    handler = log_handler(
        stream or log_stream(),
        log_format=log_format,
        times=adds_times(log_time),
        process=process,
        colour=wants_colour(sys.stderr) if colour is None else colour,
    )
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(LEVELS[level])
    logging.captureWarnings(True)  # a warning of Python's is a record like any other, not a line of its own
    logging.getLogger("asyncio").setLevel(max(LEVELS[level], logging.INFO))  # it logs each event loop at debug
    logging.getLogger("watchfiles").setLevel(max(LEVELS[level], logging.WARNING))  # it counts changes, also at info
    return handler


def log_handler(
    stream: LogStream, *, log_format: str, times: bool = False, process: int | None = None, colour: bool = False
) -> LogHandler:
    """Return a handler that writes text or JSON lines; `process` is the number of one of several processes."""
    handler = JsonHandler(stream, process) if log_format == "json" else TextHandler(stream, process, times, colour)
    stream.say_lost = handler.lost
    return handler


def log_stream(raw: BinaryIO | None = None) -> LogStream:
    """Return where the log goes: stderr unless given."""
    return LogStream(_unbuffered_stderr() if raw is None else raw)


def adds_times(log_time: str) -> bool:
    """Return whether lines of text start with the time; "auto" omits it on a terminal and under journald."""
    return log_time == "always" or (log_time == "auto" and not sys.stderr.isatty() and not _is_journal())


def _is_journal() -> bool:
    """Return whether stderr is the connection to journald that systemd announces in JOURNAL_STREAM."""
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _unbuffered_stderr() -> Any:
    buffer = sys.stderr.buffer
    return getattr(buffer, "raw", buffer)


class LogHandler(logging.Handler):
    """Writes each record as a whole line."""

    def __init__(self, stream: LogStream, process: int | None) -> None:
        super().__init__()
        self._stream = stream
        self._process = process

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            add_current_job(record)
            self._stream.write(self.line(record))
        except Exception:  # noqa: BLE001 - logging must not fail its caller
            self.handleError(record)

    def lost(self, count: int) -> str:
        """Return the line that reports dropped lines."""
        message = f"Log lines dropped because nothing read them: {count}"
        return self.line(_record(f"{LOGGER_NAME}.core", logging.WARNING, message))

    def line(self, record: logging.LogRecord) -> str:
        """Return a record as text that ends with a line break."""
        raise NotImplementedError


class TextHandler(LogHandler):
    """Writes `[job(thread: task{id})] INFO: message`, and below it where an exception comes from."""

    def __init__(self, stream: LogStream, process: int | None, times: bool, colour: bool) -> None:
        super().__init__(stream, process)
        self._has_times = times
        self._has_colour = colour

    def line(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and indented lines for its exception."""
        message = _message(record)
        text = f"{self._head(record)}{indented(message)}\n"
        error = _error_of(record)
        return text if error is None else text + "".join(_error_lines(error, message))

    def _head(self, record: logging.LogRecord) -> str:
        when = f"{_time(record.created)} " if self._has_times else ""
        return f"{when}[{visible(self._where(record))}] {_level_text(record.levelno, self._has_colour)}: "

    def _place(self, logger: str) -> str:
        label = _label(logger)
        return label if self._process is None else f"{label}#{self._process}"

    def _where(self, record: logging.LogRecord) -> str:
        fields = vars(record)
        if fields.get("job_id") is None or _label(record.name) in ("worker", "core"):
            return self._place(record.name)
        job = f"{fields.get('task')}{{{fields['job_id']}}}"
        return f"{self._place(record.name)}({record.threadName}: {job})"


class JsonHandler(LogHandler):
    """Writes one JSON object a line: `ts`, `level`, `message`, `logger`, the record's fields, and `error`."""

    def line(self, record: logging.LogRecord) -> str:
        """Return a record as one JSON object."""
        entry = self._entry(record, _message(record))
        for key, value in record_fields(record).items():
            if key not in entry:
                entry[key] = _plain(value)
        error = _error_of(record)
        if error is not None:
            entry["error"] = _error_entry(error)
        return to_json(entry) + "\n"

    def _entry(self, record: logging.LogRecord, message: str) -> dict[str, object]:
        process = {} if self._process is None else {"process": self._process}
        return {
            "ts": _time(record.created),
            "level": _level_name(record.levelno),
            "message": message,
            "label": _label(record.name),
            "logger": record.name,
            "thread": record.threadName,
            **process,
        }


# -- parts of a line -------------------------------------------------------------------------------------------------


def _record(name: str, level: int, message: str) -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 0, message, (), None)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - wrong arguments of the caller; the rest of the line still counts
        return f"{record.msg!r} (its arguments do not fit: {type(error).__name__})"


def _label(name: str) -> str:
    return name.removeprefix(f"{LOGGER_NAME}.") if name != LOGGER_NAME else "core"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _level_name(level: int) -> str:
    return next((name for name, value in reversed(LEVELS.items()) if level >= value), "debug")


def _level_text(level: int, colour: bool) -> str:
    name = _level_name(level)
    return f"{COLOURS[name]}{name.upper()}{UNCOLOURED}" if colour else name.upper()


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | int | float | bool | datetime):
        return value
    return _text(value)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - the __str__ of an application; the log goes on
        return f"({type(value).__name__})"


# -- exceptions ------------------------------------------------------------------------------------------------------


def _error_of(record: logging.LogRecord) -> BaseException | None:
    return record.exc_info[1] if record.exc_info else None


def _linked(error: BaseException) -> tuple[str, BaseException | None]:
    """Return the error that this one was raised from or while handling, and which of the two."""
    if error.__cause__ is not None:
        return "cause", error.__cause__
    return "context", None if error.__suppress_context__ else error.__context__


def _members(error: BaseException) -> Sequence[BaseException]:
    return error.exceptions if isinstance(error, BaseExceptionGroup) else ()


def _error_entry(error: BaseException, budget: Iterator[bool] | None = None) -> dict[str, Any]:
    """Return an error and those linked with it, at most one for each item of `budget`: a chain can be a circle."""
    budget = repeat(True, MAX_CHAIN) if budget is None else budget
    entry: dict[str, Any] = {"type": type(error).__name__, "message": _error_text(error), "frames": frames_of(error)}
    link, linked = _linked(error)
    if linked is not None and next(budget, False):
        entry[link] = _error_entry(linked, budget)
    members = [_error_entry(each, budget) for each in _members(error) if next(budget, False)]
    if members:
        entry["exceptions"] = members
    return entry


def _error_lines(error: BaseException, message: str) -> list[str]:
    entry = _error_entry(error)
    title = _title(entry)
    lines = [*([] if title in message else [title]), *_details(entry)]
    return [f"    {indented(line)}\n" for line in lines]


def _details(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines below an error: its frames, its cause or context, and the members of a group."""
    yield from (f"at {place}" for place in entry["frames"])
    linked = (("caused by", entry.get("cause")), ("while handling", entry.get("context")))
    for relation, each in (*linked, *(("member", member) for member in entry.get("exceptions", ()))):
        if each is not None:
            yield f"{relation} {_title(each)}"
            yield from (f"    {line}" for line in _details(each))


def _title(entry: Mapping[str, Any]) -> str:
    return f"{entry['type']}: {entry['message']}" if entry["message"] else str(entry["type"])


def _error_text(error: BaseException) -> str:
    return _text(error).strip()[:MAX_ERROR_TEXT]


def frames_of(error: BaseException) -> list[str]:
    """Return where an error was raised, innermost first, without the frames of gw's own packages.

    An error that only passed frames of gw, and is not one of gw's own classes, is a defect of gw: then these are shown.
    """
    frames = [(frame.f_globals.get("__name__", ""), frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    others = [each for each in frames if not _is_ours(each[0])]
    shown = others if others or _is_ours(type(error).__module__) else frames
    places = [f"{visible(path_from_here(code.co_filename))}:{line} in {code.co_name}" for _, code, line in shown]
    return places[: -MAX_FRAMES - 1 : -1]


def _is_ours(module: object) -> bool:
    return str(module).partition(".")[0] in ("gw_core", "gw_cli")
