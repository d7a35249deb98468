"""The retry rules of a task: after which exception the next attempt comes when, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import TaskLoadError
from gw_core.domain.job.outcome import GiveUp

RetryRule = Duration | type[GiveUp] | Callable[[int], Duration | type[GiveUp]]
"""`GiveUp`, the delay of the next attempt, or a function of the attempt's number that returns one of them."""

RetryRules = tuple[tuple[type[BaseException], RetryRule], ...]


DECIDED: Final = "__graphile_retry__"
"""The attribute of an exception that another process raised: what the rules decided there."""


def checked_rules(rules: Any) -> RetryRules:
    """Return the rules; raises `TaskLoadError` for one that is wrong."""
    if not isinstance(rules, Mapping):
        raise TaskLoadError(f"retry is a dict of exceptions and what to do, not {type(rules).__name__}")
    for error, rule in rules.items():
        if not (isinstance(error, type) and issubclass(error, BaseException)):
            raise TaskLoadError(f"retry names classes of exceptions, not {error!r}")
        if rule is not GiveUp and (isinstance(rule, type) or not callable(rule)):
            as_duration(f"retry for {error.__name__}", rule, TaskLoadError)
    return tuple(rules.items())


def delay_after(error: BaseException, rules: RetryRules, attempt: int) -> timedelta | type[GiveUp] | None:
    """Return the delay of the next attempt, `GiveUp` for none, or None for the usual delay; the first rule counts.

    Raises what the function of a rule raises, and `InvalidInputError` for what it may not return.
    """
    if hasattr(error, DECIDED):
        decided: timedelta | type[GiveUp] | None = getattr(error, DECIDED)
        return decided
    for kind, rule in rules:
        if isinstance(error, kind):
            answer: Any = rule(attempt) if callable(rule) and rule is not GiveUp else rule
            return GiveUp if answer is GiveUp else max(timedelta(0), as_duration("the delay", answer))
    return None
