"""What type checkers know of a public function's options is what it takes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, get_overloads

import gw_core
from gw_core import testing


def overloads() -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Yield each public function, or method of a public class, with each of its overloads."""
    for module in (gw_core, testing):
        for public in (getattr(module, name) for name in module.__all__):
            for function in (public, *(vars(public).values() if inspect.isclass(public) else ())):
                if inspect.isfunction(function):
                    yield from ((function, overload) for overload in get_overloads(function))


def test_overloads_name_every_option_that_the_function_takes() -> None:
    compared = []
    for function, overload in overloads():
        parameters = inspect.signature(function).parameters.values()
        named = re.search(r"Unpack\[(\w+)\]", str(overload.__annotations__.get("options")))
        if named is None or any(each.kind is each.VAR_KEYWORD for each in parameters):
            continue
        taken = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
        assert set(function.__globals__[named[1]].__annotations__) == taken, function.__qualname__
        compared.append(function.__qualname__)

    assert "perform" in compared
