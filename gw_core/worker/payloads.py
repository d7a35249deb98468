"""Turn a payload's JSON text into what a task's annotation asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gw_core.domain.errors import GraphileWorkerError, TaskLoadError


class PayloadError(GraphileWorkerError):
    """The payload does not fit the task's annotation; the attempt fails and may succeed with a newer worker."""


@dataclass(frozen=True, slots=True)
class PayloadReader:
    """How one task reads its payload.

    `decode` is what every run calls. `rescue` is asked only when `decode` raised: it returns the payload after all, or
    raises the `PayloadError` that becomes the attempt's failure.
    """

    decode: Callable[[str], Any]
    rescue: Callable[[str, Exception], Any]


def reader_for(annotation: object) -> PayloadReader:
    """Return the reader for an annotation; raises `TaskLoadError` when JSON cannot be converted to it."""
    if annotation is Any or annotation is object:
        return PLAIN
    if _is_pydantic(annotation):
        return _pydantic_reader(annotation)
    return _msgspec_reader(annotation)


# -- plain JSON ----------------------------------------------------------------------------------------------------


def _read_leniently(text: str, error: Exception) -> Any:
    """Read what PostgreSQL's json accepts and the fast decoder does not: 1e400, a lone surrogate."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as second:
        raise PayloadError(f"the payload cannot be read: {second}") from None


PLAIN: Final = PayloadReader(msgspec.json.Decoder().decode, _read_leniently)
"""The reader of tasks that ask for nothing in particular: dicts, lists, texts, numbers, booleans and None."""


# -- msgspec -------------------------------------------------------------------------------------------------------


def _msgspec_reader(annotation: object) -> PayloadReader:
    try:
        kind = msgspec.inspect.type_info(annotation)
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(annotation, dec_hook=_convert)
    except (TypeError, ValueError, NameError) as error:
        raise TaskLoadError(f"a payload cannot be converted to {name_of(annotation)}: {error}") from error
    if isinstance(kind, msgspec.inspect.CustomType):
        raise TaskLoadError(
            f"a payload cannot be converted to {name_of(annotation)}; "
            "use a dataclass, TypedDict, msgspec.Struct, pydantic model or plain JSON types"
        )
    return PayloadReader(decoder.decode, _refuser(annotation, _msgspec_reason))


def _convert(kind: Any, value: Any) -> Any:
    """Convert what msgspec does not know inside what it knows: the models in `list[Model]`."""
    if not _is_pydantic(kind):
        raise NotImplementedError(f"a payload cannot be converted to {name_of(kind)}")
    try:
        # Through JSON text, for in strict mode pydantic reads fewer types from Python values than from JSON.
        return _pydantic_validator(kind)(msgspec.json.encode(value))
    except ValueError as error:
        raise ValueError(_pydantic_reason(error)) from None


# msgspec repeats the offending value for these two; a payload does not belong in a log.
_TOLD_VALUE = re.compile(r"^Invalid (enum )?value .*?(?= - at `\$[^`]*`$|$)", re.DOTALL)


def _msgspec_reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return _TOLD_VALUE.sub("the value is not among those allowed", str(error))


# -- pydantic ------------------------------------------------------------------------------------------------------


def _is_pydantic(annotation: object) -> bool:
    """True for a pydantic model or dataclass; asks without importing pydantic."""
    return isinstance(annotation, type) and hasattr(annotation, "__pydantic_validator__")


def _pydantic_reader(annotation: Any) -> PayloadReader:
    return PayloadReader(_pydantic_validator(annotation), _refuser(annotation, _pydantic_reason))


def _pydantic_validator(annotation: Any) -> Callable[[str | bytes], Any]:
    validate: Callable[[str | bytes], Any] | None = getattr(annotation, "model_validate_json", None)
    if validate is not None:
        return validate
    from pydantic import TypeAdapter  # a pydantic dataclass has no method of its own; pydantic is loaded already

    return TypeAdapter(annotation).validate_json


def _pydantic_reason(error: Exception) -> str:
    """Return pydantic's complaints without the input, which its own text repeats."""
    list_errors: Callable[[], Sequence[Mapping[str, Any]]] | None = getattr(error, "errors", None)
    if list_errors is None:
        return str(error)
    faults = list_errors()
    return "; ".join(f"{fault['msg']} - at `{_path(fault['loc'])}`" for fault in faults)


def _path(location: Sequence[int | str]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)


# -- both ----------------------------------------------------------------------------------------------------------


def _refuser(annotation: object, reason: Callable[[Exception], str]) -> Callable[[str, Exception], Any]:
    wanted = name_of(annotation)

    def refuse(_text: str, error: Exception) -> Any:
        # Without the cause, whose own text may hold the payload.
        raise PayloadError(f"the payload does not fit {wanted}: {reason(error)}") from None

    return refuse


def name_of(annotation: object) -> str:
    """Return an annotation as its author would write it."""
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
