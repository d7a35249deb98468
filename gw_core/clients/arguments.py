"""Check the arguments of a public method by their annotations, before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial, wraps
from typing import Any, Final, ParamSpec, TypeVar

from gw_core.domain.durations import as_duration
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import Job, JobSpec

P = ParamSpec("P")
T = TypeVar("T")

Check = Callable[[str, Any], object]
"""Raises `InvalidInputError` for a value that a parameter of this name does not take."""

_PLAIN: Final[Mapping[str, type]] = {"int": int, "str": str, "bool": bool}
_SEVERAL: Final = re.compile(r"(?:Sequence|Collection)\[(.*)\]")
_WORDS: Final = {int: "a whole number", str: "a text", bool: "True or False"}


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Let a method raise `InvalidInputError` for an argument of a wrong type.

    Numbers, texts, truth values, durations, objects of gw's classes and lists of these are checked. Other annotations,
    such as selections, specs of jobs and times, are left to what reads them.
    """
    code, annotations = function.__code__, function.__annotations__
    names = code.co_varnames
    others = names[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 0x04 else None
    checks = {
        name: check
        for name, annotation in annotations.items()
        if name != "return" and (check := _check_of(annotation, function.__globals__)) is not None
    }
    of_positions = [checks.get(name) for name in names[: code.co_argcount]]

    @wraps(function)
    def method(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, check, value in zip(names, of_positions, args, strict=False):
            if check is not None:
                check(name, value)
        if others in checks:
            for value in args[code.co_argcount :]:
                checks[others](others, value)
        for name, value in kwargs.items():
            if name in checks:
                checks[name](name, value)
        return function(*args, **kwargs)

    return method


def _check_of(annotation: str, around: Mapping[str, Any]) -> Check | None:
    """Return the check for an annotation, as it is written in a module; None: it is not checked here."""
    if not annotation.endswith(" | None"):
        return _check_of_value(annotation, around)
    check = _check_of_value(annotation.removesuffix(" | None"), around)
    return None if check is None else lambda name, value: None if value is None else check(name, value)


def _check_of_value(annotation: str, around: Mapping[str, Any]) -> Check | None:
    if annotation == "Duration":
        return as_duration
    if (several := _SEVERAL.fullmatch(annotation)) is not None:
        check = _check_of_value(several[1], around)
        return None if check is None else partial(_check_each, check)
    types = [_PLAIN.get(each) or _own_class(around.get(each)) for each in annotation.split(" | ")]
    found = tuple(each for each in types if each is not None)
    return partial(_check_type, found) if len(found) == len(types) else None


def _own_class(value: object) -> type | None:
    if isinstance(value, type) and value.__module__.startswith("gw_core.") and value is not JobSpec:
        return value
    return None


def _check_type(types: tuple[type, ...], name: str, value: object) -> None:
    # A truth value is a number for Python.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        words = " or ".join(_WORDS.get(each) or f"a {each.__name__}" for each in types)
        hint = "; give its id" if isinstance(value, Job) and int in types else ""
        raise InvalidInputError(f"{name} must be {words}, not {type(value).__name__}{hint}")


def _check_each(check: Check, name: str, values: object) -> None:
    if isinstance(values, str | bytes) or not isinstance(values, Collection):
        raise InvalidInputError(f"{name} must be a list, not {type(values).__name__}")
    for each in values:
        check(f"each of {name}", each)
