"""Record the answers of a data source and play them back later: to show what was seen, to colleagues or in tests.

A recording is one JSON object a line, compressed when its name ends in `.gz`: first which queue it is of, then each
answer with the seconds since the beginning. Secrets are masked in it as they are on the screen.
"""

from __future__ import annotations

import gzip
import threading
import time
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

import gw_core.errors
from gw_core.errors import GraphileWorkerError, InvalidInputError
from gw_core.front_ends import LockWaits, QueueSize, QueueSnapshot
from gw_core.operations import (
    EndedAttempt,
    Finding,
    HistoryPage,
    JobPage,
    JobReport,
    QueueCounts,
    QueueReport,
    RunSeries,
)
from gw_core.runtime.files import new_file
from gw_tui.data.playback import Playback
from gw_tui.data.source import ClientSource, DataSource
from gw_tui.rules.options import QueueInfo
from gw_tui.rules.recurring import Crontabs
from gw_tui.text.json_view import json_view
from gw_tui.text.redact import masked

if TYPE_CHECKING:
    from gw_core.front_ends import JobListener, NameKind
    from gw_tui.actions.actions import Action, Result

VERSION: Final = 1
ZIPPED: Final = ".gz"
DEMO: Final = Path(__file__).with_name("demo.jsonl.gz")
"""Two minutes of a queue with all that an operator meets, for `gw tui --demo`; `docs/make_demo.py` makes it."""

# A recording may come from someone else and is read into memory: compressed data can become a thousand times larger.
MAX_READ: Final = 512 * 1024 * 1024
"""Bytes of a recording, uncompressed; more than a day of a busy queue."""
MAX_LINES: Final = 1_000_000
MAX_LINE: Final = 16 * 1024 * 1024

T = TypeVar("T")


class _Head(msgspec.Struct):
    """The first line."""

    gw_tui_recording: int
    at: datetime
    where: str
    schema: str


class RecordedLine(msgspec.Struct, omit_defaults=True):
    """One answer, or the error there was instead: the name of its class, and its reason."""

    after: float
    ask: str
    answer: msgspec.Raw = msgspec.Raw(b"null")
    error: tuple[str, str] | None = None


_KINDS: Final[Mapping[str, Any]] = {
    "snapshot": QueueSnapshot,
    "page": JobPage,
    "job": JobReport | None,
    "attempts": list[EndedAttempt],
    "statistics": QueueCounts,
    "history": HistoryPage,
    "runs": RunSeries,
    "queues": list[QueueReport],
    "queue_sizes": list[QueueSize],
    "crontabs": Crontabs,
    "findings": list[Finding],
    "blockages": LockWaits,
    "names": list[str],
}


# -- recording -------------------------------------------------------------------------------------------------------


class RecordingSource(DataSource):
    """Answers as another source does, and records the answers. Actions pass through and are not recorded.

    Raises `OSError` when the file cannot be created; an existing one is never overwritten. When it cannot be written
    later, the console continues without recording, and `failure` is the reason.
    """

    def __init__(self, source: DataSource, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self.info, self.playback = source.info, source.playback
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()  # guards the file: the reader and the actor are two threads
        self._latest: dict[str, bytes] = {}
        self.failure: str | None = None
        self.file: IO[bytes] | None = _new_file(path)
        self._write(_Head(VERSION, datetime.now(UTC), self.info.where, self.info.schema))

    def count_locks(self) -> timedelta | None:
        return self._source.count_locks()

    def run(self, action: Action) -> Result:
        return self._source.run(action)

    def listen(self) -> JobListener:
        return self._source.listen()

    def cancel(self) -> None:
        self._source.cancel()

    def close(self) -> None:
        """Let go of everything, and end the recording."""
        self._source.close()
        with self._lock:
            self._end()

    # -- inside ----------------------------------------------------------------------------------------------------

    def answer(self, key: str, query: Callable[[ClientSource], T]) -> T:
        try:
            answer = self._source.answer(key, query)
        except GraphileWorkerError as error:
            self._note(key, b"null", (type(error).__name__, masked(str(error))))
            raise
        self._note(key, msgspec.json.encode(_without_secrets(msgspec.to_builtins(answer))), None)
        return answer

    def _note(self, ask: str, answer: bytes, error: tuple[str, str] | None) -> None:
        if error is None and self._latest.get(ask) == answer:
            return
        self._latest[ask] = b"" if error is not None else answer
        self._write(RecordedLine(round(self._clock() - self._began, 3), ask, msgspec.Raw(answer), error))

    def _write(self, line: _Head | RecordedLine) -> None:
        with self._lock:
            if self.file is None:
                return
            try:
                self.file.write(msgspec.json.encode(line) + b"\n")
                self.file.flush()
            except OSError as error:
                self.failure = error.strerror or str(error)
                self._end()

    def _end(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self.failure = self.failure or error.strerror


def _new_file(path: Path) -> IO[bytes]:
    """Make a new file that only its owner may read: it holds payloads."""
    plain = new_file(path)
    if path.suffix != ZIPPED:
        return plain
    zipped = gzip.GzipFile(fileobj=plain, mode="wb")
    zipped.myfileobj = plain  # type: ignore[assignment] # to be closed with it
    return cast("IO[bytes]", zipped)


# -- secrets ---------------------------------------------------------------------------------------------------------

_FREE_TEXTS: Final = frozenset({"error", "last_error", "message", "statement"})
_PAYLOADS: Final = frozenset({"payload", "payload_json", "result_json"})


def _without_secrets(value: Any, name: str = "") -> Any:
    """Return a plain value that has this name, with what looks like a secret in it hidden, as the screens hide it."""
    match value:
        case str() if name in _FREE_TEXTS:
            return masked(value)
        case str() | dict() if value and name in _PAYLOADS:
            return _masked_payload(value)
        case dict():
            return {key: _without_secrets(each, key) for key, each in value.items()}
        case list() | tuple():
            return [_without_secrets(each) for each in value]
        case _:
            return value


def _masked_payload(payload: str | dict[str, Any]) -> object:
    """Return a payload as it was given: the JSON text of a job, or the value of a recurring task."""
    if isinstance(payload, str):
        return str(json_view(payload, whole=True))
    try:
        return msgspec.json.decode(str(json_view(msgspec.json.encode(payload).decode(), whole=True)))
    except msgspec.DecodeError:  # a text so long that it was cut
        return {}


# -- playing back ----------------------------------------------------------------------------------------------------


class NotRecordedError(InvalidInputError):
    """The recording has no answer to the query."""


class ReplaySource(DataSource):
    """Answers as it was answered then, at the position of `playback`; it takes no actions.

    Raises `InvalidInputError` for a file that is not a recording, `OSError` for one that cannot be read.
    """

    playback: Playback

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        head, self._tracks = _read(path)
        self.info = QueueInfo(where=f"{head.where} (replay)", schema=head.schema, is_read_only=True)
        length = max((timestamps[-1] for timestamps, _ in self._tracks.values()), default=0.0)
        self.playback = Playback(length, clock)

    def names(self, kind: NameKind, prefix: str = "") -> Sequence[str]:
        """Return names to suggest, as far as any were asked for then."""
        try:
            return super().names(kind, prefix)
        except NotRecordedError:
            return ()

    def run(self, action: Action) -> Result:
        """Reject the action: a recording cannot change."""
        raise InvalidInputError("this is a recording; actions are unavailable")

    def answer(self, key: str, query: Callable[[ClientSource], T]) -> T:
        if key not in self._tracks:
            raise NotRecordedError("not in the recording")
        timestamps, lines = self._tracks[key]
        line = lines[max(0, bisect_right(timestamps, self.playback.position) - 1)]
        if line.error is not None:
            raise _error(*line.error)
        try:
            return cast(T, msgspec.json.decode(line.answer, type=_KINDS[key.split(" ", 1)[0]]))
        except msgspec.DecodeError as error:
            raise InvalidInputError(f"this part of the recording cannot be read: {error}") from None


_Tracks = Mapping[str, tuple[list[float], list[RecordedLine]]]


def _read(path: Path) -> tuple[_Head, _Tracks]:
    """Return the head of a recording, and the answers to each query with their timestamps."""
    tracks: dict[str, tuple[list[float], list[RecordedLine]]] = {}
    lines = _lines(path)
    try:
        head = msgspec.json.decode(next(lines, b""), type=_Head)
        if head.gw_tui_recording != VERSION:
            theirs = head.gw_tui_recording
            raise InvalidInputError(f"{path} is a recording of version {theirs}; this gw plays version {VERSION}")
        for text in lines:
            line = msgspec.json.decode(text, type=RecordedLine)
            timestamps, answers = tracks.setdefault(line.ask, ([], []))
            timestamps.append(line.after)
            answers.append(line)
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"{path} is not a console recording: {error}") from None
    return head, tracks


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines; the last one is left out when it was cut short, as by a console that was killed.

    Raises `InvalidInputError` for more than can be played.
    """
    count = size = 0
    with gzip.open(path, "rb") if path.suffix == ZIPPED else path.open("rb") as file:
        while True:
            try:
                line = file.readline(MAX_LINE + 1)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                return
            count, size = count + 1, size + len(line)
            if len(line) > MAX_LINE or size > MAX_READ or count > MAX_LINES:
                raise InvalidInputError(
                    f"{path} is too large to play: a recording has at most {MAX_LINES:,} lines and "
                    f"{MAX_READ >> 20} MiB uncompressed, {MAX_LINE >> 20} MiB in one line"
                )
            if not line.endswith(b"\n"):
                return
            yield line


def _error(name: str, reason: str) -> GraphileWorkerError:
    found = getattr(gw_core.errors, name, None) if name.endswith("Error") else None
    if isinstance(found, type) and issubclass(found, GraphileWorkerError):
        return found(reason)
    return GraphileWorkerError(reason)
