"""The messages of the threads to the screens: frozen values, and the only thing that passes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from gw_core.operations import QueueSnapshot
    from gw_tui.actions.actions import Action, Result
    from gw_tui.data.source import Query
    from gw_tui.rules.connection_state import FailureKind


class SnapshotReceived(Message):
    """The hot look came back; the next one is due after `rest` seconds."""

    def __init__(self, snapshot: QueueSnapshot, took: float, rest: float = 0.0) -> None:
        super().__init__()
        self.snapshot = snapshot
        self.took = took
        self.rest = rest

    def can_replace(self, message: Message) -> bool:
        """A newer look supersedes one not yet drawn."""
        return isinstance(message, SnapshotReceived)


class QueryAnswered(Message):
    """A screen's query was answered; `generation` identifies the request it belongs to."""

    def __init__(self, generation: int, query: Query, answer: object, took: float) -> None:
        super().__init__()
        self.generation = generation
        self.query = query
        self.answer = answer
        self.took = took

    def can_replace(self, message: Message) -> bool:
        """A newer answer to the same query supersedes one not yet drawn."""
        return isinstance(message, QueryAnswered) and message.query == self.query


class QueryFailed(Message):
    """A snapshot or a query failed, but the connection works; `query` is None for a snapshot."""

    def __init__(self, generation: int, query: Query | None, failure: FailureKind, reason: str) -> None:
        super().__init__()
        self.generation = generation
        self.query = query
        self.failure = failure
        self.reason = reason


class Connecting(Message):
    """A try to reach the database has begun."""


class ConnectionLost(Message):
    """The database cannot be asked; the next try comes after `retry_in` seconds, or when asked for."""

    def __init__(self, failure: FailureKind, reason: str, retry_in: float | None) -> None:
        super().__init__()
        self.failure = failure
        self.reason = reason
        self.retry_in = retry_in


class JobsAnnounced(Message):
    """New jobs were announced."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.jobs = jobs


class ListenStateChanged(Message):
    """Whether announcements arrive; if not, `reason` is why."""

    def __init__(self, is_listening: bool, reason: str = "") -> None:
        super().__init__()
        self.is_listening = is_listening
        self.reason = reason


class ActionFinished(Message):
    """An action finished with `result`; or it failed with `reason`, and nothing was changed."""

    def __init__(
        self, action: Action, *, result: Result | None = None, failure: FailureKind | None = None, reason: str = ""
    ) -> None:
        super().__init__()
        self.action = action
        self.result = result
        self.failure = failure
        self.reason = reason


class ActionLogFailed(Message):
    """An action finished, but could not be written to the action log."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason
