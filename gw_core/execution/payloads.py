"""Turn a payload's JSON text into what a task's annotation asks for.

`_cron` and `_trace` are transport: schedulers put them beside the fields of the caller. A type that asks for them gets
them; from a payload that does not fit because of them they are taken off. Plain payloads keep them, as in Node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from gw_core.domain.errors import GraphileWorkerError, TaskLoadError


class PayloadError(GraphileWorkerError):
    """The payload does not fit the task's annotation; the attempt fails and may succeed with a newer worker."""


class PayloadReader(msgspec.Struct, frozen=True):
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


# -- transport ---------------------------------------------------------------------------------------------------------

_CRON: Final = "_cron"
_TRACE: Final = "_trace"
_decode_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class CronRun(msgspec.Struct, frozen=True):
    """What a scheduler adds to the payload of a recurring task."""

    ts: datetime
    """When the job was due, in UTC."""
    backfilled: bool = False
    """True when the job was not added on time."""


def cron_of(text: str) -> CronRun | None:
    """Return the payload's `_cron`; None when it has none."""
    raw = _transport(text).get(_CRON)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=CronRun)
    except msgspec.MsgspecError:  # a field of the caller's that has this name by chance
        return None


def trace_of(text: str) -> Any:
    """Return the payload's `_trace`, which graphile_worker_rs adds, as plain values; None when it has none."""
    raw = _transport(text).get(_TRACE)
    return None if raw is None else msgspec.json.decode(raw)


def _transport(text: str) -> Mapping[str, msgspec.Raw]:
    if f'"{_CRON}"' not in text and f'"{_TRACE}"' not in text:
        return {}
    try:
        fields = _decode_fields(text)
    except msgspec.MsgspecError:  # not an object
        return {}
    return {name: fields[name] for name in (_CRON, _TRACE) if name in fields}


def _without_transport(text: str) -> str | None:
    """Return the payload without its transport; None when it carries none."""
    if not _transport(text):
        return None
    fields = _decode_fields(text)
    return msgspec.json.encode({name: fields[name] for name in fields if name not in (_CRON, _TRACE)}).decode()


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
    return PayloadReader(decoder.decode, _rejecter(annotation, decoder.decode, _msgspec_reason))


def _convert(kind: Any, value: Any) -> Any:
    """Convert what msgspec does not know inside what it knows: the models in `list[Model]`."""
    if not _is_pydantic(kind):
        raise NotImplementedError(f"a payload cannot be converted to {name_of(kind)}")
    try:
        # Through JSON text, for in strict mode pydantic reads fewer types from Python values than from JSON.
        return _pydantic_validator(kind)(msgspec.json.encode(value))
    except ValueError as error:
        raise ValueError(_pydantic_reason(error)) from None


NOT_ALLOWED: Final = "the value is not among those allowed"

# msgspec repeats the offending value for these two; a payload does not belong in a log.
_QUOTED_VALUE = re.compile(r"^Invalid (enum )?value .*?(?= - at `\$[^`]*`$|$)", re.DOTALL)


def _msgspec_reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return _QUOTED_VALUE.sub(NOT_ALLOWED, str(error))


# -- pydantic ------------------------------------------------------------------------------------------------------


def _is_pydantic(annotation: object) -> bool:
    """True for a pydantic model or dataclass; asks without importing pydantic."""
    return isinstance(annotation, type) and hasattr(annotation, "__pydantic_validator__")


def _pydantic_reader(annotation: Any) -> PayloadReader:
    validate = _pydantic_validator(annotation)
    return PayloadReader(validate, _rejecter(annotation, validate, _pydantic_reason))


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
    errors = list_errors()
    return "; ".join(f"{_pydantic_message(error)} - at `{_path(error['loc'])}`" for error in errors)


def _pydantic_message(error: Mapping[str, Any]) -> str:
    # The only message of pydantic's own that quotes a value.
    return NOT_ALLOWED if error["type"] == "union_tag_invalid" else str(error["msg"])


def _path(location: Sequence[int | str]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)


# -- both ----------------------------------------------------------------------------------------------------------


def _rejecter(
    annotation: object, decode: Callable[[str], Any], reason: Callable[[Exception], str]
) -> Callable[[str, Exception], Any]:
    expected = name_of(annotation)

    def reject(text: str, error: Exception) -> Any:
        if (rest := _without_transport(text)) is not None:
            try:
                return decode(rest)
            except Exception as second:  # noqa: BLE001 - whatever a model's validators raise
                error = second
        # Without the cause, whose own text may hold the payload.
        raise PayloadError(f"the payload does not fit {expected}: {reason(error)}") from None

    return reject


def name_of(annotation: object) -> str:
    """Return an annotation as its author would write it."""
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
