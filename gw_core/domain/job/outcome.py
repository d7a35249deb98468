"""How one run of a job ended, as a value; and what a task raises to end it in its own way."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from traceback import format_exception
from typing import Final

import msgspec

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.job import Job

MAX_TRACEBACK: Final = 20_000
"""Characters of a traceback that history keeps."""


class GiveUp(Exception):  # noqa: N818 - states the decision: raise GiveUp("card declined")
    """Raise from a task to fail the job permanently: no further attempts, whatever `max_attempts` is.

    Example: docs/guide/writing-tasks.md
    """


class RetryAfter(Exception):  # noqa: N818 - see GiveUp
    """Raise from a task to fail this attempt and be tried again after `delay` instead of the usual backoff.

    Example: docs/guide/writing-tasks.md
    """

    def __init__(self, delay: Duration, reason: str = "the task asked to be retried later") -> None:
        super().__init__(reason)
        self.delay = _non_negative(delay)


class Snooze(Exception):  # noqa: N818 - see GiveUp
    """Raise from a task to run again after `delay` without counting this attempt.

    Example: docs/guide/writing-tasks.md
    """

    def __init__(self, delay: Duration, reason: str = "snoozed by the task") -> None:
        super().__init__(reason)
        self.delay = _non_negative(delay)


class Interrupted(BaseException):  # no Exception, so that no task takes it for a failure
    """Raised in a task by a step or `context.checkpoint()` when its run must end: let it pass.

    When the worker stops, the job then runs again immediately, and this attempt does not count.

    Example: docs/guide/long-jobs.md
    """

    def __init__(self, reason: str = "interrupted between steps: the worker is stopping") -> None:
        super().__init__(reason)


def _non_negative(delay: Duration) -> timedelta:
    """Return the delay as a `timedelta`; plain numbers are seconds."""
    delay = as_duration("the delay", delay)
    if delay < timedelta(0):
        raise InvalidInputError(f"the delay must not be negative, got {delay}")
    return delay


# Structs for the reason given at `Job`: one is made for every run.


@hides("result")
class Completed(msgspec.Struct, frozen=True, gc=False):
    """The task returned; the job is to be deleted.

    `result` is what the task returned, as JSON text, if its results are kept; `result_error` is why this one is not.
    """

    job: Job
    seconds: float
    result: str | None = None
    result_error: str | None = None


@hides("payload")
class Failed(msgspec.Struct, frozen=True):
    """The task raised; the job waits for its next attempt, or gave its last.

    `delay` replaces the backoff, `permanent` ends the attempts, `payload` (JSON text) replaces the payload: the items
    of a batch job that are still to be done. A job that expired has not `started`.
    """

    job: Job
    seconds: float
    error: BaseException
    message: str
    delay: timedelta | None = None
    permanent: bool = False
    payload: str | None = None
    started: bool = True

    @property
    def is_final(self) -> bool:
        """True when no attempt is left."""
        return self.permanent or self.job.is_last_attempt


class Returned(msgspec.Struct, frozen=True):
    """The run does not count: the job returns to the queue with its attempt not counted, to run after `delay`."""

    job: Job
    reason: str
    delay: timedelta = timedelta(0)
    seconds: float = 0.0
    started: bool = True


Outcome = Completed | Failed | Returned


def error_message(error: BaseException) -> str:
    """Return the `last_error` of an exception: its type and its text, if it has one."""
    if isinstance(error, GiveUp | RetryAfter):
        return _text_of(error)
    if isinstance(error, SystemExit):
        return f"the task called sys.exit({error.code!r})"
    return f"{type(error).__name__}: {_text_of(error)}".removesuffix(": ")


def error_type_of(error: BaseException) -> str:
    """Return the module and name of an exception's class; of gw's own only the package, as its modules may move."""
    kind = type(error)
    package = kind.__module__.partition(".")[0]
    return storable(f"{package if package == 'gw_core' else kind.__module__}.{kind.__qualname__}")


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an exception, its end if it is long."""
    try:
        text = "".join(format_exception(error))
    except Exception:  # noqa: BLE001 - as below
        text = "(its traceback could not be produced)"
    return storable(text[-MAX_TRACEBACK:])


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ of user code must not lose the failure itself
        text = "(its message could not be produced)"
    return storable(text)


def ascii_text(text: str) -> str:
    """Return a text with escapes in place of all characters but those of ASCII, which every encoding has."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def ascii_json(text: str) -> str:
    """Return JSON text that means the same in ASCII: other characters can only stand in strings."""
    return re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)


def storable(text: str) -> str:
    """Return a text as PostgreSQL can hold it: without NUL and lone surrogates."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
