"""Access to the queue of a backend, beside `enqueue`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gw_core import Client, JobSpec
from gw_core.contrib.django.backend import GraphileWorkerBackend
from gw_core.contrib.django.compat import task_backends
from gw_core.errors import InvalidInputError


def client(alias: str = "default") -> Client:
    """Return a client for the queue of a backend in `TASKS`, on Django's own connection.

    A call that takes `conn` belongs to the current `atomic()` block; without one it is committed immediately. Other
    calls, which search or wait, open a connection with the settings of Django's; it is closed with the client, at the
    latest when the client is dropped. Raises `InvalidInputError` for a backend of another package.
    """
    return _backend(alias).client()


def job_spec(task: Any, *args: Any, **kwargs: Any) -> JobSpec:
    """Return the job that `task.enqueue(*args, **kwargs)` adds, for `client().add_many()` and `client().groups.add()`.

    Raises `InvalidTask`, as `enqueue` does.
    """
    return _backend(task.backend).job_spec(task, args, kwargs)


def enqueue_many(task: Any, calls: Iterable[Sequence[Any] | Mapping[str, Any]]) -> list[str]:
    """Enqueue a task for each call, in as few statements as possible, and return the ids in no promised order.

    A call is a list or tuple of positional arguments, or a dictionary of keyword arguments. All tasks are enqueued or
    none. The signal `task_enqueued` is not sent. A backend of another package enqueues them one after the other.
    """
    pairs = [_arguments(each) for each in calls]
    backend = task_backends[task.backend]
    if isinstance(backend, GraphileWorkerBackend):
        return backend.enqueue_many(task, pairs)
    return [str(backend.enqueue(task, args, kwargs).id) for args, kwargs in pairs]


def _arguments(call: Sequence[Any] | Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if isinstance(call, Mapping):
        return (), call
    if isinstance(call, list | tuple):
        return call, {}
    raise InvalidInputError(
        f"a call is a list or tuple of arguments, or a dictionary of keyword arguments, not {type(call).__name__}"
    )


def _backend(alias: str) -> GraphileWorkerBackend:
    found = task_backends[alias]
    if not isinstance(found, GraphileWorkerBackend):
        raise InvalidInputError(f"TASKS[{alias!r}] is a {type(found).__name__}, and no backend of gw")
    return found
