"""The tasks that functions are, kept on the functions, so that a job can be added by naming one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from gw_core.domain.errors import InvalidJobError

TASKS: Final = "__graphile_tasks__"
"""The attribute of functions."""


def note_task(function: Callable[..., object], task: Any) -> None:
    """Keep the task on the function; one that takes no attributes can be added by its identifier only."""
    others = [each for each in getattr(function, TASKS, ()) if each._identifier != task._identifier]
    with suppress(AttributeError):
        setattr(function, TASKS, (*others, task))


def tasks_of(function: object) -> tuple[Any, ...]:
    """Return the tasks that a function is, or what it wraps; `functools.wraps` copies them to a wrapper."""
    while function is not None:
        if known := getattr(function, TASKS, ()):
            return tuple(known)
        function = getattr(function, "__wrapped__", None)
    return ()


def task_behind(function: Callable[..., object]) -> Any:
    """Return the only task that the function is. Raises `InvalidJobError` when it is none, or several."""
    known = tasks_of(function)
    if len(known) == 1:
        return known[0]
    name = getattr(function, "__qualname__", repr(function))
    if not known:
        raise InvalidJobError(f"{name} is not a task; decorate it with @task, or give the task identifier as text")
    names = ", ".join(each.identifier for each in known)
    raise InvalidJobError(f"{name} is a task under {len(known)} identifiers ({names}); give one as text")


def identifier_of(task: str | Callable[..., object]) -> str:
    """Return the identifier of a task, which may be the identifier itself. Raises as `task_behind` does."""
    if isinstance(task, str) or not callable(task):
        return task
    identifier: str = task_behind(task).identifier
    return identifier
