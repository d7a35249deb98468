"""Steps: parts of a job that are not repeated by its later attempts."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from gw_core.domain.errors import GraphileWorkerError, InvalidInputError, InvalidJobError
from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.job import json_text
from gw_core.domain.job.outcome import storable

MAX_STEP_BYTES: Final = 10_000_000
MAX_NAME_LENGTH: Final = 200


@hides("value")
class KeptStep(msgspec.Struct, frozen=True):
    """What a step has kept, as JSON text: its result, or its cursor while it is not finished."""

    value: str
    finished: bool


@hides("value_json")
class JobStep(msgspec.Struct, frozen=True):
    """A step of a job, as it was saved last.

    Example: docs/guide/long-jobs.md
    """

    name: str
    value_json: str
    """The result or the cursor as JSON text; empty if it was not asked for."""
    finished: bool
    """False for a cursor."""
    attempt: int
    """The attempt that saved it."""
    saved_at: datetime

    @property
    def value(self) -> Any:
        """The result or the cursor as plain Python values, decoded at each access."""
        return msgspec.json.decode(self.value_json) if self.value_json else None


class StepLostError(GraphileWorkerError):
    """The claim of this run no longer holds the job, so the step was not kept: another worker may run the job."""

    def __init__(self, name: str) -> None:
        super().__init__(f"step {name!r} was not kept: this attempt has lost its job, which may run elsewhere by now")


def check_step_name(name: str) -> None:
    """Reject a name that the table cannot hold."""
    if not isinstance(name, str) or not name or len(name) > MAX_NAME_LENGTH or name != storable(name):
        raise InvalidInputError(f"the name of a step is a text of 1 to {MAX_NAME_LENGTH} characters, not {name!r:.300}")


def step_text(name: str, value: object) -> str:
    """Return the result or the cursor of a step as JSON text; raises `InvalidJobError` for one that cannot be kept."""
    text = json_text(value, what=f"value of step {name!r}")
    size = len(text.encode())
    if size > MAX_STEP_BYTES:
        raise InvalidJobError(
            f"the value of step {name!r} is {size:,} bytes long and at most {MAX_STEP_BYTES:,} are allowed; "
            "store large values elsewhere and return a reference"
        )
    return text


def used_twice(name: str) -> InvalidInputError:
    """Return the error for a name that a run of a job uses again."""
    return InvalidInputError(f"step {name!r} has already run in this attempt; give each step of a job its own name")


def not_a_cursor(name: str) -> InvalidInputError:
    """Return the error for a cursor where an earlier attempt has kept a result."""
    return InvalidInputError(f"step {name!r} has kept a result, so it has no cursor; give the cursor another name")
