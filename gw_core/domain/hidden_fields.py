"""Leave payloads, results and passwords out of the `repr` of the values that carry them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")


class _Hidden:
    """Stands in a `repr` for a value that is not shown."""

    def __repr__(self) -> str:
        return "..."


HIDDEN: Final = _Hidden()


def hides(*names: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator for structs and dataclasses: `repr` writes `...` for these fields, unless they are None.

    The `repr` of a job ends in logs, in tracebacks with local variables and in error trackers. Rich has a method of its
    own for it, which structs define. A field that begins with an underscore is shown as the property of that name
    without it.
    """

    def shown(value: Any) -> Iterator[tuple[str, Any]]:
        for name in _field_names(type(value)):
            public = name.lstrip("_")
            found = getattr(value, public)
            yield public, HIDDEN if name in names and found is not None else found

    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={found!r}' for name, found in shown(self))})"

    def decorate(kind: type[T]) -> type[T]:
        unknown = set(names) - set(_field_names(kind))
        if unknown:
            raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}")
        kind.__repr__ = text  # type: ignore[method-assign]
        kind.__rich_repr__ = shown  # type: ignore[attr-defined]
        return kind

    return decorate


def _field_names(kind: Any) -> Sequence[str]:
    if issubclass(kind, msgspec.Struct):
        return tuple(kind.__struct_fields__)
    return tuple(each.name for each in dataclasses.fields(kind))
