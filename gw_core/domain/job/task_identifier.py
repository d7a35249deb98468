"""The identifiers of tasks, kept on their functions, so that a job can be added by naming the function."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gw_core.domain.errors import InvalidJobError

_IDENTIFIERS: Final = "__graphile_identifiers__"


def note_identifier(function: Callable[..., object], identifier: str) -> None:
    """Keep the identifier on the function; one that takes no attributes can be added by its identifier only."""
    known: tuple[str, ...] = getattr(function, _IDENTIFIERS, ())
    if identifier not in known:
        with suppress(AttributeError):
            setattr(function, _IDENTIFIERS, (*known, identifier))


def identifier_of(function: Callable[..., object]) -> str:
    """Return the identifier of the task that the function is.

    Raises `InvalidJobError` when it is not a task, or a task under several identifiers.
    """
    known: tuple[str, ...] = getattr(function, _IDENTIFIERS, ())
    if len(known) == 1:
        return known[0]
    name = getattr(function, "__qualname__", repr(function))
    if not known:
        raise InvalidJobError(f"{name} is not a task; decorate it with @task, or give the task identifier as text")
    raise InvalidJobError(f"{name} is a task under {len(known)} identifiers ({', '.join(known)}); give one as text")
