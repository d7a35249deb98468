"""Inspect a task's signature once, and build the cheapest call that fits it."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from enum import Enum, auto
from inspect import Parameter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gw_core.domain.errors import TaskLoadError
from gw_core.execution.payloads import PLAIN, PayloadReader, reader_for
from gw_core.runtime import forks

if TYPE_CHECKING:
    from gw_core.domain.job.job import Job
    from gw_core.execution.context import JobContext

Invoke = Callable[["Job", "JobContext"], object]
"""Runs a task for a job: reads the payload, calls the function, returns what it returned."""

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Passing(Enum):
    """How a function takes its context."""

    NOT = auto()
    AS_SECOND = auto()
    BY_NAME = auto()


def compose(function: Callable[..., object]) -> Invoke:
    """Return the call for a function of `()`, `(payload)` or `(payload, context)`.

    A coroutine function is run to its end on the shared event loop. Raises `TaskLoadError` when the signature or the
    payload's annotation cannot be a task's, and `NameError` when the annotation names what is not defined (yet).
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TaskLoadError("it is a generator function, whose body a call does not run; remove the yield")
    call = _closure(function, *_shape_of(function))
    return _awaited(call) if is_coroutine_function(function) else _ending_children(call)


def is_coroutine_function(function: Callable[..., object]) -> bool:
    """True for `async def`, also behind `functools.partial` or as `__call__` of an object."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _awaited(call: Callable[[Job, JobContext], Any]) -> Invoke:
    from gw_core.execution.event_loop import SHARED  # asyncio is loaded for those who use it

    return lambda job, context: SHARED.run(call(job, context), context)


def _ending_children(call: Invoke) -> Invoke:
    """Return the call that ends a child process which the task forked and which returns from it."""

    def run(job: Job, context: JobContext) -> object:
        began = forks.count
        try:
            return call(job, context)
        finally:
            if forks.count != began:
                forks.end_if_child(began)

    return run


# -- the call ------------------------------------------------------------------------------------------------------
# One closure for each shape, so that a run pays for nothing but its decoding and its call.


def _closure(function: Callable[..., object], reader: PayloadReader | None, passing: Passing) -> Invoke:
    if reader is None:
        if passing is Passing.NOT:
            return lambda job, context: function()
        return lambda job, context: function(context=context)
    if passing is Passing.BY_NAME:
        return _with_payload(lambda payload, context: function(payload, context=context), reader, Passing.AS_SECOND)
    return _with_payload(function, reader, passing)


def _with_payload(function: Callable[..., object], reader: PayloadReader, passing: Passing) -> Invoke:
    decode, rescue = reader.decode, reader.rescue

    def call(job: Job, context: JobContext) -> object:
        try:
            payload = decode(job.payload_json)
        except Exception as error:  # noqa: BLE001 - whatever a model's validators raise; rescue makes it a PayloadError
            payload = rescue(job.payload_json, error)
        return function(payload)

    def call_with_context(job: Job, context: JobContext) -> object:
        try:
            payload = decode(job.payload_json)
        except Exception as error:  # noqa: BLE001 - as above
            payload = rescue(job.payload_json, error)
        return function(payload, context)

    return call if passing is Passing.NOT else call_with_context


# -- the signature -------------------------------------------------------------------------------------------------


def _shape_of(function: Callable[..., object]) -> tuple[PayloadReader | None, Passing]:
    """Return how the function takes its payload, None for not at all, and its context; raises as `compose` does."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return PLAIN, Passing.NOT  # some built-in functions have no signature
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    takes_any = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters)
    named = [each for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
    _check_required(positional, named)
    reader = _reader(function, positional[0]) if positional else (PLAIN if takes_any else None)
    return reader, _passing(positional, named, takes_any=takes_any)


def _check_required(positional: list[Parameter], named: list[Parameter]) -> None:
    surplus = [each.name for each in positional[2:] if each.default is Parameter.empty]
    surplus += [each.name for each in named if each.default is Parameter.empty and each.name != "context"]
    if surplus:
        raise TaskLoadError(
            f"a task is called with (payload) or (payload, context), but this one also needs {', '.join(surplus)}"
        )


def _passing(positional: list[Parameter], named: list[Parameter], *, takes_any: bool) -> Passing:
    if any(each.name == "context" for each in named):
        return Passing.BY_NAME
    if len(positional) >= 2:
        return Passing.AS_SECOND if _is_context(positional[1]) else Passing.NOT
    return Passing.AS_SECOND if takes_any else Passing.NOT


def _is_context(second: Parameter) -> bool:
    # A parameter such as dry_run=False keeps its default: a context in its place would be true, and a surprise.
    return second.default is Parameter.empty or second.name == "context" or _names_context(second.annotation)


def _names_context(annotation: object) -> bool:
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.split(".")[-1].split(" ")[0] == "JobContext"


def _reader(function: Callable[..., object], first: Parameter) -> PayloadReader:
    if first.annotation is Parameter.empty:
        return PLAIN
    if _names_context(first.annotation):
        raise TaskLoadError(
            f"its first parameter {first.name} is annotated as the context, "
            "but the payload comes first: use (payload, context)"
        )
    return reader_for(_resolved(function, first))


def _resolved(function: Callable[..., object], parameter: Parameter) -> object:
    """Return the annotation with its names looked up where the function was defined.

    Only this parameter's: other annotations may name what exists for type checkers alone.
    """
    code = plain_function(function)
    known = dict(getattr(code, "__globals__", {}))
    known.update(_closed_over(code))
    annotated = SimpleNamespace(__annotations__={"payload": parameter.annotation})
    return typing.get_type_hints(annotated, globalns=known, include_extras=True)["payload"]


def _closed_over(code: object) -> dict[str, object]:
    names = getattr(getattr(code, "__code__", None), "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, getattr(code, "__closure__", None) or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def plain_function(function: object) -> object:
    """Return the `def` behind partials, bound methods, decorators and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not hasattr(function, "__code__") and not isinstance(function, type):
            method = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is wanted
            return method if hasattr(method, "__code__") else function
        else:
            return function
