"""Inspect a task's signature once, and build the cheapest call that fits it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from enum import Enum, auto
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from gw_core.domain.errors import TaskLoadError
from gw_core.execution.functions import is_coroutine_function, resolved
from gw_core.execution.payloads import PLAIN, PayloadReader, name_of, reader_for, without_transport
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


def _awaited(call: Callable[[Job, JobContext], Any]) -> Invoke:
    from gw_core.execution.event_loop import run_on_loop  # asyncio is loaded for those who use it

    return lambda job, context: run_on_loop(call(job, context), context)


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
        text = job.payload_json
        if '"_' in text:
            text = without_transport(text)
        try:
            payload = decode(text)
        except Exception as error:  # noqa: BLE001 - whatever a model's validators raise; rescue makes it a PayloadError
            payload = rescue(text, error)
        return function(payload)

    def call_with_context(job: Job, context: JobContext) -> object:
        text = job.payload_json
        if '"_' in text:
            text = without_transport(text)
        try:
            payload = decode(text)
        except Exception as error:  # noqa: BLE001 - as above
            payload = rescue(text, error)
        return function(payload, context)

    return call if passing is Passing.NOT else call_with_context


# -- what is read --------------------------------------------------------------------------------------------------


def payload_reader(function: Callable[..., object]) -> PayloadReader | None:
    """Return the reader of a function's payload, None if it takes none; raises as `compose` does."""
    return _shape_of(function)[0]


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
    _check_positional(function, positional)
    reader = _reader(function, positional[0]) if positional else (PLAIN if takes_any else None)
    return reader, _passing(positional, named, takes_any=takes_any)


def _check_required(positional: list[Parameter], named: list[Parameter]) -> None:
    surplus = [each.name for each in positional[2:] if each.default is Parameter.empty]
    surplus += [each.name for each in named if each.default is Parameter.empty and each.name != "context"]
    if surplus:
        raise TaskLoadError(
            f"a task is called with (payload) or (payload, context), but this one also needs {', '.join(surplus)}"
        )


def _check_positional(function: Callable[..., object], positional: list[Parameter]) -> None:
    """Reject a function whose parameters mean something else than a payload and a context."""
    if positional and positional[0].name in ("self", "cls") and positional[0].annotation is Parameter.empty:
        raise TaskLoadError(
            f"its first parameter is {positional[0].name}, so it is a method that is not bound to an object; "
            "register the method of an object"
        )
    for second in positional[1:2]:
        if second.default is Parameter.empty and not _may_be_context(function, second):
            raise TaskLoadError(
                f"its second parameter {second.name} would get the JobContext, but is annotated as "
                f"{name_of(second.annotation)}; a task has one payload, such as a dataclass with several fields"
            )


def _may_be_context(function: Callable[..., object], second: Parameter) -> bool:
    if second.annotation is Parameter.empty or _names_context(second.annotation):
        return True
    try:
        return _accepts_context(resolved(function, second.annotation))
    except NameError:  # imported for type checkers alone
        return "context" in second.name


def _accepts_context(annotation: Any) -> bool:
    """Return whether a context fits: JobContext, a class below it, a protocol, or a union with one of these."""
    return any(
        kind in (Any, object)
        or isinstance(kind, typing.TypeVar)
        or getattr(kind, "_is_protocol", False)
        or any(map(_names_context, getattr(kind, "__mro__", ())))
        for kind in typing.get_args(annotation) or (annotation,)
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
    return reader_for(resolved(function, first.annotation))
