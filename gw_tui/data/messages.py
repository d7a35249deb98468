"""What the threads tell the screen: each a frozen statement, the only thing that crosses from one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from gw_core.operations import QueueSnapshot
    from gw_tui.data.source import Act, Question, Result
    from gw_tui.rules.connection_state import FailureKind


class SnapshotReceived(Message):
    """The hot look came back; the next one is due after `rest` seconds."""

    def __init__(self, glance: QueueSnapshot, took: float, rest: float = 0.0) -> None:
        super().__init__()
        self.glance = glance
        self.took = took
        self.rest = rest

    def can_replace(self, message: Message) -> bool:
        """A newer look supersedes one not yet drawn."""
        return isinstance(message, SnapshotReceived)


class QueryAnswered(Message):
    """A screen's question was answered; `generation` says which asking it belongs to."""

    def __init__(self, generation: int, question: Question, answer: object, took: float) -> None:
        super().__init__()
        self.generation = generation
        self.question = question
        self.answer = answer
        self.took = took

    def can_replace(self, message: Message) -> bool:
        """A newer answer to the same question supersedes one not yet drawn."""
        return isinstance(message, QueryAnswered) and message.question == self.question


class QueryFailed(Message):
    """One look or question failed, and the connection lives; `question` is None for the hot look."""

    def __init__(self, generation: int, question: Question | None, trouble: FailureKind, sentence: str) -> None:
        super().__init__()
        self.generation = generation
        self.question = question
        self.trouble = trouble
        self.sentence = sentence


class Connecting(Message):
    """A try to reach the database has begun."""


class ConnectionLost(Message):
    """The database cannot be asked; the next try comes after `retry_in` seconds, or when asked for."""

    def __init__(self, trouble: FailureKind, sentence: str, retry_in: float | None) -> None:
        super().__init__()
        self.trouble = trouble
        self.sentence = sentence
        self.retry_in = retry_in


class JobsAnnounced(Message):
    """Workers were told of new jobs."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.jobs = jobs


class ListenStateChanged(Message):
    """Whether announcements are heard; if not, `sentence` says why."""

    def __init__(self, hears: bool, sentence: str = "") -> None:
        super().__init__()
        self.hears = hears
        self.sentence = sentence


class ActionFinished(Message):
    """An act was done, as far as `result` says; or it failed, and nothing was done, with `sentence`."""

    def __init__(
        self, act: Act, *, result: Result | None = None, trouble: FailureKind | None = None, sentence: str = ""
    ) -> None:
        super().__init__()
        self.act = act
        self.result = result
        self.trouble = trouble
        self.sentence = sentence


class ActionLogFailed(Message):
    """An act was done and could not be written down."""

    def __init__(self, sentence: str) -> None:
        super().__init__()
        self.sentence = sentence
