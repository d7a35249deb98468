"""What is known of a function: whether it is a coroutine function, and the types that its annotations name."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from gw_core.domain.errors import TaskLoadError
from gw_core.execution.payloads import PLAIN, PayloadReader, reader_for


def is_coroutine_function(function: Callable[..., object]) -> bool:
    """True for `async def`, also behind `functools.partial` or as `__call__` of an object."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


@functools.lru_cache(maxsize=256)
def result_reader(function: Callable[..., object]) -> PayloadReader:
    """Return the reader for what a function is annotated to return; plain values if that is no type of JSON."""
    annotation = getattr(plain_function(function), "__annotations__", {}).get("return", Any)
    try:
        return reader_for(resolved(function, annotation))
    except (TaskLoadError, NameError):
        return PLAIN


def resolved(function: Callable[..., object], annotation: object) -> object:
    """Return the annotation with its names looked up where the function was defined.

    Only this one: other annotations may name what exists for type checkers alone.
    """
    code = plain_function(function)
    known = dict(getattr(code, "__globals__", {}))
    known.update(_closed_over(code))
    annotated = SimpleNamespace(__annotations__={"payload": annotation})
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
