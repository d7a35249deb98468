"""Turn a payload's JSON text into what a task's annotation asks for.

`_cron` and `_trace` are transport: schedulers and tracers put them beside the fields of the caller. They never become
arguments; the context has them.

msgspec reads a payload, and asks pydantic for the models in it. Pydantic reads whole payloads that it alone can read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import msgspec

from gw_core.domain.errors import GraphileWorkerError, TaskLoadError


class PayloadError(GraphileWorkerError):
    """The payload does not fit the task's annotation, or cannot be read.

    With `permanent`, no attempt can change that, so the job is not retried: a value has the wrong type, or is out of
    its limits. A missing field, an unknown field or name, and what a validator rejects may fit with another version of
    the worker.

    Example: docs/api/errors.md
    """

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class PayloadReader(msgspec.Struct, frozen=True):
    """How one task reads its payload.

    `decode` is what every run calls. `rescue` is asked only when `decode` raised: it returns the payload after all, or
    raises the `PayloadError` that becomes the attempt's failure.
    """

    decode: Callable[[str], Any]
    rescue: Callable[[str, Exception], Any]

    def read(self, text: str) -> Any:
        """Return the value of the JSON text; raises `PayloadError`."""
        try:
            return self.decode(text)
        except Exception as error:  # noqa: BLE001 - whatever a model's validators raise
            return self.rescue(text, error)


def reader_for(annotation: object) -> PayloadReader:
    """Return the reader for an annotation; raises `TaskLoadError` when JSON cannot be converted to it."""
    if annotation is Any or annotation is object:
        return PLAIN
    parts = list(_parts(annotation, set()))
    if _is_pydantic(annotation) or any(map(_is_constraint_of_pydantic, parts)):
        return _pydantic_reader(annotation, parts)
    try:
        return _msgspec_reader(annotation)
    except TaskLoadError:
        if any(map(_is_pydantic, parts)):  # such as a union of models
            return _pydantic_reader(annotation, parts)
        raise


def _parts(annotation: Any, seen: set[object]) -> Iterator[object]:
    """Yield the annotation, the types in it at any depth, and what `Annotated` adds to them."""
    annotation = getattr(annotation, "__value__", annotation)  # of `type Name = ...`
    yield annotation
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
        yield from _parts(annotation.__origin__, seen)
        return
    for each in get_args(annotation):
        yield from _parts(each, seen)
    kind = get_origin(annotation) or annotation
    if not isinstance(kind, type) or kind in seen or _is_pydantic(kind) or not _has_fields(kind):
        return
    seen.add(kind)
    try:
        fields = get_type_hints(kind, include_extras=True)
    except NameError:  # those who read the type report it
        return
    for each in fields.values():
        yield from _parts(each, seen)


_MARKS_OF_FIELDS: Final = ("__dataclass_fields__", "__struct_fields__", "__total__", "_fields", "__attrs_attrs__")


def _has_fields(kind: type) -> bool:
    return any(hasattr(kind, mark) for mark in _MARKS_OF_FIELDS)


# -- plain JSON ----------------------------------------------------------------------------------------------------


def _read_leniently(text: str, error: Exception) -> Any:
    """Read what PostgreSQL's json accepts and the fast decoder does not: 1e400, a lone surrogate."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as second:
        raise PayloadError(f"the payload cannot be read: {second}", permanent=True) from None


PLAIN: Final = PayloadReader(msgspec.json.Decoder().decode, _read_leniently)
"""The reader of tasks that ask for nothing in particular: dicts, lists, texts, numbers, booleans and None."""


# -- transport ---------------------------------------------------------------------------------------------------------

_CRON: Final = "_cron"
_TRACE: Final = "_trace"
_decode_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class CronRun(msgspec.Struct, frozen=True):
    """The fields that a scheduler adds to the payload of a recurring task.

    Example: docs/api/gw_core.md
    """

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


def without_transport(text: str) -> str:
    """Return a payload without its transport, also in the items of a list."""
    if f'"{_CRON}"' not in text and f'"{_TRACE}"' not in text:
        return text
    try:
        kept = msgspec.json.encode(_cleaned(msgspec.json.decode(text, type=_Fields | list[msgspec.Raw])))
    except msgspec.ValidationError:  # neither an object nor a list
        return text
    except msgspec.MsgspecError:  # what PostgreSQL's json accepts and the fast decoder does not
        return json.dumps(_cleaned(json.loads(text)))
    return kept.decode()


_Fields = dict[str, msgspec.Raw]


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if name not in (_CRON, _TRACE)}
    if isinstance(value, list):
        return [_cleaned_item(each) for each in value]
    return value


def _cleaned_item(item: Any) -> Any:
    if not isinstance(item, msgspec.Raw):
        return _cleaned(item) if isinstance(item, dict) else item
    return _cleaned(msgspec.json.decode(item, type=_Fields)) if bytes(item).lstrip().startswith(b"{") else item


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
    return PayloadReader(decoder.decode, _rejecter(annotation, _msgspec_reason, _is_certain_for_msgspec))


class _ModelError(ValueError):
    """A model inside a payload that msgspec reads does not fit."""

    def __init__(self, error: Exception) -> None:
        super().__init__(_pydantic_reason(error))
        self.permanent = _is_certain_for_pydantic(error)


def _convert(kind: Any, value: Any) -> Any:
    """Convert what msgspec does not know inside what it knows: the models in `list[Model]`."""
    if not _is_pydantic(kind):
        raise NotImplementedError(f"a payload cannot be converted to {name_of(kind)}")
    try:
        # Through JSON text, for in strict mode pydantic reads fewer types from Python values than from JSON.
        return _pydantic_validator(kind)(msgspec.json.encode(value))
    except ValueError as error:
        raise _ModelError(error) from None


NOT_ALLOWED: Final = "the value is not among those allowed"

# msgspec repeats the offending value for these two; a payload does not belong in a log.
_QUOTED_VALUE = re.compile(r"^Invalid (enum )?value .*?(?= - at `\$[^`]*`$|$)", re.DOTALL)


# What no other version of the same field accepts.
_CERTAIN: Final = re.compile(
    r"Expected `|Invalid (RFC3339|ISO8601|UUID|base64|decimal)|(Integer|Number) .*out of range"
)
_PATHS: Final = re.compile(r"^(.*- at `\$.*) - at `\$([^`]*)`$", re.DOTALL)


def _msgspec_reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    reason = _QUOTED_VALUE.sub(NOT_ALLOWED, str(error))
    nested = _PATHS.match(reason)  # of a model: its own path, and where the model is
    return reason if nested is None else nested[1].replace("at `$", f"at `${nested[2]}")


def _is_certain_for_msgspec(error: Exception) -> bool:
    if isinstance(error.__cause__, _ModelError):
        return error.__cause__.permanent
    return not isinstance(error, msgspec.ValidationError) or _CERTAIN.match(str(error)) is not None


# -- pydantic ------------------------------------------------------------------------------------------------------


OLDEST_PYDANTIC: Final = (2, 11)
"""The first one that reads fields by their aliases and by their names."""


def _is_pydantic(annotation: object) -> bool:
    """True for a model, a pydantic dataclass and another type that pydantic reads; asks without importing pydantic."""
    return isinstance(annotation, type) and (
        hasattr(annotation, "__pydantic_validator__") or hasattr(annotation, "__get_pydantic_core_schema__")
    )


def _is_constraint_of_pydantic(part: object) -> bool:
    """True for what pydantic checks and msgspec does not: `Field(ge=3)`, `AfterValidator(…)`, `annotated_types.Gt`."""
    kind = part if isinstance(part, type) else type(part)
    package = kind.__module__.partition(".")[0]
    return package == "annotated_types" or (package == "pydantic" and not isinstance(part, type))


def _pydantic_reader(annotation: Any, parts: Sequence[object]) -> PayloadReader:
    if bytes in parts or bytearray in parts:
        raise TaskLoadError(
            f"a payload cannot be converted to {name_of(annotation)}: bytes are written as base64 outside of models, "
            "and pydantic would read them as text; put them into a model"
        )
    try:
        validate = _pydantic_validator(annotation)
    except ImportError:
        raise TaskLoadError(f"a payload of {name_of(annotation)} needs pydantic; install it") from None
    except TaskLoadError:
        raise
    except Exception as error:
        raise TaskLoadError(f"a payload cannot be converted to {name_of(annotation)}: {error}") from error
    return PayloadReader(validate, _rejecter(annotation, _pydantic_reason, _is_certain_for_pydantic))


@cache
def _pydantic_validator(annotation: Any) -> Callable[[str | bytes], Any]:
    """Return the function that reads JSON as this type; fields have their names, which gw writes, or their aliases."""
    import pydantic

    if tuple(map(int, pydantic.VERSION.split(".")[:2])) < OLDEST_PYDANTIC:
        oldest = ".".join(map(str, OLDEST_PYDANTIC))
        raise TaskLoadError(f"tasks with pydantic types need pydantic {oldest} or later, not {pydantic.VERSION}")
    return partial(pydantic.TypeAdapter(annotation).validate_json, by_alias=True, by_name=True)


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


_UNCERTAIN: Final = {
    *("missing", "extra_forbidden", "missing_argument", "unexpected_keyword_argument"),
    *("enum", "literal_error", "union_tag_invalid", "union_tag_not_found", "value_error", "assertion_error"),
}


def _is_certain_for_pydantic(error: Exception) -> bool:
    """True when each complaint is pydantic's own about a value, so that another attempt has the same."""
    list_errors: Callable[[], Sequence[Mapping[str, Any]]] | None = getattr(error, "errors", None)
    if list_errors is None:
        return False
    from pydantic_core import core_schema

    known = frozenset(get_args(core_schema.ErrorType)) - _UNCERTAIN
    return all(each["type"] in known for each in list_errors())


def _path(location: Sequence[int | str]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)


# -- both ----------------------------------------------------------------------------------------------------------


def _rejecter(
    annotation: object, reason: Callable[[Exception], str], is_certain: Callable[[Exception], bool]
) -> Callable[[str, Exception], Any]:
    expected = name_of(annotation)

    def reject(text: str, error: Exception) -> Any:
        # Without the cause, whose own text may hold the payload.
        message = f"the payload does not fit {expected}: {reason(error)}"
        raise PayloadError(message, permanent=is_certain(error)) from None

    return reject


def name_of(annotation: object) -> str:
    """Return an annotation as its author would write it."""
    if get_origin(annotation) is Annotated:
        return name_of(annotation.__origin__)  # type: ignore[attr-defined] # what `Annotated` is about
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
