"""The messages of the threads to the screens: frozen values, and the only thing that passes between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from gw_core.front_ends import QueueSnapshot
    from gw_tui.actions import Action, Result
    from gw_tui.data.source import Query
    from gw_tui.rules.connection_state import FailureKind


@dataclass
class SnapshotReceived(Message):
    """The hot look came back; the next one is due after `rest` seconds."""

    snapshot: QueueSnapshot
    took: float
    rest: float = 0.0

    def can_replace(self, message: Message) -> bool:
        """A newer look supersedes one not yet drawn."""
        return isinstance(message, SnapshotReceived)


@dataclass
class QueryAnswered(Message):
    """A screen's query was answered; `generation` identifies the request it belongs to."""

    generation: int
    query: Query
    answer: object
    took: float

    def can_replace(self, message: Message) -> bool:
        """A newer answer to the same query supersedes one not yet drawn."""
        return isinstance(message, QueryAnswered) and message.query == self.query


@dataclass
class QueryFailed(Message):
    """A snapshot or a query failed, but the connection works; `query` is None for a snapshot."""

    generation: int
    query: Query | None
    failure: FailureKind
    reason: str


@dataclass
class Connecting(Message):
    """A try to reach the database has begun."""


@dataclass
class ConnectionLost(Message):
    """The database cannot be asked; the next try comes after `retry_in` seconds, or when asked for."""

    failure: FailureKind
    reason: str
    retry_in: float | None


@dataclass
class JobsAnnounced(Message):
    """New jobs were announced."""

    jobs: int


@dataclass
class ListenStateChanged(Message):
    """Whether announcements arrive; if not, `reason` is why."""

    is_listening: bool
    reason: str = ""


@dataclass
class ActionProgressed(Message):
    """A batch of an action is done; `result` holds all of them so far."""

    action: Action
    result: Result


@dataclass
class ActionFinished(Message):
    """An action finished with `result`; or it failed with `reason` after that."""

    action: Action
    result: Result
    failure: FailureKind | None = None
    reason: str = ""


@dataclass
class ActionLogFailed(Message):
    """An action finished, but could not be written to the action log."""

    reason: str
