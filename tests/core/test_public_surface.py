"""The public surface equals public_surface.txt, which is only changed manually."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import typing
from collections.abc import Iterator
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from test_public_names import MODULES

from gw_core import AsyncClient, Client

NOWHERE = "postgres://localhost:1/nowhere"
WRITTEN = Path(__file__).with_name("public_surface.txt")
PUBLIC = (*MODULES, "gw_core.testing", "gw_core.contrib.opentelemetry", "gw_core.contrib.sentry")

MAX_NAMES = 150
"""The largest number of public names in all modules: a name that is new takes the place of another one."""


def names() -> dict[str, Any]:
    """Return every public name with its module."""
    modules = [importlib.import_module(module) for module in PUBLIC]
    return {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in _all(module)}


def _all(module: Any) -> list[str]:
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return sorted(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def surface() -> Iterator[str]:
    """Yield a line for each public name, its members and their parameters, and for the members of a client's parts."""
    for name, value in names().items():
        if inspect.isclass(value):
            yield f"{name}{'' if _is_made_by_gw(value) else _parameters(value)}"
            yield from (f"{name}.{each}" for each in sorted(set(_members(value))))
        else:
            yield f"{name}{_parameters(value) if inspect.isfunction(value) else ''}"
    for client in (Client(NOWHERE), AsyncClient(NOWHERE)):
        for part, member in inspect.getmembers_static(type(client)):
            if isinstance(member, cached_property) and not part.startswith("_"):
                members = sorted(set(_members(type(getattr(client, part)))))
                yield from (f"gw_core.{type(client).__name__}.{part}.{each}" for each in members)


def _is_made_by_gw(kind: type) -> bool:
    """Whether the class is a value: its fields are public, and the way to construct one is not."""
    is_plain = issubclass(kind, enum.Enum | BaseException) or typing.is_typeddict(kind)
    written = getattr(getattr(kind, "__init__", None), "__code__", None)
    return is_plain or (_is_value(kind) and (written is None or written.co_filename == "<string>"))


def _is_value(kind: type) -> bool:
    return issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)


def _members(kind: type) -> Iterator[str]:
    if issubclass(kind, enum.Enum):
        yield from kind.__members__
    elif typing.is_typeddict(kind):
        yield from kind.__annotations__
    else:
        if _is_value(kind):
            fields = kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else kind.__dataclass_fields__
            yield from (name for name in fields if not name.startswith("_"))
        for name in dir(kind):
            if not name.startswith("_") and not _is_inherited_from_outside(kind, name):
                yield from _member(kind, name)


def _member(kind: type, name: str) -> Iterator[str]:
    member = inspect.getattr_static(kind, name)
    if isinstance(member, property | cached_property) or inspect.isdatadescriptor(member):
        yield name
    elif inspect.isroutine(function := getattr(kind, name)):
        yield f"{name}{_parameters(function)}"


def _is_inherited_from_outside(kind: type, name: str) -> bool:
    owner = next(each for each in kind.__mro__ if name in vars(each))
    return not owner.__module__.startswith("gw_")


def _parameters(value: Any) -> str:
    """Return the parameters of a call in the form of Python, without their types and with `=…` for defaults."""
    signature = inspect.signature(value)
    shown = [
        each.replace(annotation=inspect.Parameter.empty, default=each.empty if each.default is each.empty else ...)
        for each in signature.parameters.values()
        if each.name not in ("self", "cls")
    ]
    return str(inspect.Signature(shown)).replace("=Ellipsis", "=…")


def test_the_surface_is_what_is_written() -> None:
    written = WRITTEN.read_text("utf-8").splitlines()
    found = list(surface())
    changes = [line for line in unified_diff(written, found, lineterm="", n=0) if line[:1] in "+-"][2:]

    assert changes == [], "edit public_surface.txt manually, and see 'Deprecations' in docs/reference/versioning.md"


def test_there_are_few_public_names() -> None:
    assert len(names()) <= MAX_NAMES
