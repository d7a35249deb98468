"""What history keeps of a job that has ended, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from gw_core.domain.errors import InvalidJobError
from gw_core.domain.job import json_text

DEFAULT_KEEP: Final = timedelta(days=1)
"""How long the job of a task with `result=True` is kept when neither the task nor the worker says how long."""

MAX_KEEP: Final = timedelta(days=36_500)

MAX_RESULT_BYTES: Final = 1_000_000
"""The size of the largest result that history takes, as JSON."""


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What a task declares: `@task(keep=…, result=…, keep_payload=…)`. Without `keep`, the worker's setting counts."""

    keep: timedelta | None = None
    result: bool = False
    payload: bool = False


NO_OPTIONS: Final = HistoryOptions()


@dataclass(frozen=True, slots=True)
class Keep:
    """What history keeps of the jobs of one task."""

    period: timedelta
    result: bool = False
    payload: bool = False


def keep_of(options: HistoryOptions, default: timedelta | None) -> Keep | None:
    """Return what history keeps of a task's jobs; None: nothing. `default` is the setting of the worker."""
    period = options.keep if options.keep is not None else default
    if period is None and options.result:
        period = DEFAULT_KEEP
    return Keep(period, options.result, options.payload) if period else None


def keeps_of(options: Mapping[str, HistoryOptions], default: timedelta | None) -> Mapping[str, Keep]:
    """Return what history keeps of each task's jobs, without the tasks of which it keeps nothing."""
    keeps = {task: keep_of(each, default) for task, each in options.items()}
    return MappingProxyType({task: keep for task, keep in keeps.items() if keep is not None})


@dataclass(frozen=True, slots=True)
class EncodedResult:
    """What a task returned, as JSON text; or why it is not kept."""

    text: str | None
    problem: str | None = None


def encoded_result(value: object) -> EncodedResult:
    """Return the result as JSON text. Never raises: a result that cannot be kept does not fail its job."""
    if isinstance(value, EncodedResult):
        return value
    try:
        text = json_text(value, what="result")
        msgspec.json.decode(text, type=msgspec.Raw)  # a `msgspec.Raw` in the result is not checked before
    except InvalidJobError as error:
        return EncodedResult(None, f"the result is not kept: {error}")
    except Exception as error:  # noqa: BLE001 - whatever a model of the task's raises while it is encoded
        return EncodedResult(None, f"the result is not kept: {type(error).__name__} while it was written as JSON")
    size = len(text.encode())
    if size > MAX_RESULT_BYTES:
        return EncodedResult(
            None,
            f"the result is not kept: it is {size:,} bytes long and at most {MAX_RESULT_BYTES:,} are allowed; "
            "store large results elsewhere and return a reference",
        )
    return EncodedResult(text)
