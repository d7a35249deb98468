"""Play the recording of a queue that `gw tui --demo` shows: `docs/make_demo.py` makes it.

A recording is one JSON object a line, compressed: first which queue it is of, then each answer with the seconds since
the beginning.
"""

from __future__ import annotations

import gzip
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

from gw_core.errors import InvalidInputError
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
from gw_tui.data.playback import Playback
from gw_tui.data.source import ClientSource, DataSource, JobRelations
from gw_tui.rules.options import QueueInfo
from gw_tui.rules.recurring import Crontabs

if TYPE_CHECKING:
    from gw_core.front_ends import NameKind
    from gw_tui.actions import Action, Result

DEMO: Final = Path(__file__).with_name("demo.jsonl.gz")
"""Two minutes of a queue with all that an operator meets."""

T = TypeVar("T")


class RecordingHead(msgspec.Struct):
    """The first line."""

    at: datetime
    where: str
    schema: str


class RecordedLine(msgspec.Struct, omit_defaults=True):
    """One answer."""

    after: float
    ask: str
    answer: msgspec.Raw


_KINDS: Final[Mapping[str, Any]] = {
    "snapshot": QueueSnapshot,
    "page": JobPage,
    "job": JobReport | None,
    "attempts": list[EndedAttempt],
    "relations": JobRelations,
    "statistics": QueueCounts,
    "history": HistoryPage,
    "runs": RunSeries,
    "queues": list[QueueReport],
    "queue_sizes": list[QueueSize],
    "ranked_queues": list[QueueReport],
    "crontabs": Crontabs,
    "findings": list[Finding],
    "blockages": LockWaits,
    "names": list[str],
}


class NotRecordedError(InvalidInputError):
    """The recording has no answer to the query."""


class ReplaySource(DataSource):
    """Answers as it was answered then, at the position of `playback`; it takes no actions."""

    playback: Playback

    def __init__(self, path: Path = DEMO, clock: Callable[[], float] = time.monotonic) -> None:
        head, self._tracks = _read(path)
        self.info = QueueInfo(where=f"{head.where} (demo)", schema=head.schema, is_read_only=True)
        length = max((timestamps[-1] for timestamps, _ in self._tracks.values()), default=0.0)
        self.playback = Playback(length, clock)

    def names(self, kind: NameKind, prefix: str = "") -> Sequence[str]:
        """Return names to suggest, as far as any were asked for then."""
        try:
            return super().names(kind, prefix)
        except NotRecordedError:
            return ()

    def run(self, action: Action) -> Iterator[Result]:
        """Reject the action: a recording cannot change."""
        raise InvalidInputError("this is a recording; actions are unavailable")

    def answer(self, key: str, query: Callable[[ClientSource], T]) -> T:
        if key not in self._tracks:
            raise NotRecordedError("the demo does not hold this")
        timestamps, lines = self._tracks[key]
        line = lines[max(0, bisect_right(timestamps, self.playback.position) - 1)]
        return cast(T, msgspec.json.decode(line.answer, type=_KINDS[key.split(" ", 1)[0]]))


_Tracks = Mapping[str, tuple[list[float], list[RecordedLine]]]


def _read(path: Path) -> tuple[RecordingHead, _Tracks]:
    """Return the head of a recording, and the answers to each query with their timestamps."""
    tracks: dict[str, tuple[list[float], list[RecordedLine]]] = {}
    first, *rest = gzip.decompress(path.read_bytes()).splitlines()
    for text in rest:
        line = msgspec.json.decode(text, type=RecordedLine)
        timestamps, answers = tracks.setdefault(line.ask, ([], []))
        timestamps.append(line.after)
        answers.append(line)
    return msgspec.json.decode(first, type=RecordingHead), tracks
