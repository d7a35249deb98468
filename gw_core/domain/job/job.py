"""A job as the database holds it, and a job as a caller asks for it."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from math import isfinite
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

import msgspec

from gw_core.domain.durations import Duration, as_duration, check_from_now
from gw_core.domain.errors import InvalidInputError, InvalidJobError
from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.slots import SlotLimit
from gw_core.domain.job.task_of_function import task_behind

E = TypeVar("E", bound=StrEnum)

MAX_IDENTIFIER_LENGTH: Final = 128
MAX_QUEUE_NAME_LENGTH: Final = 128
MAX_JOB_KEY_LENGTH: Final = 512
SMALLINT_MIN: Final = -32768
SMALLINT_MAX: Final = 32767
MAX_UNIQUE: Final = timedelta(days=3660)

END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)
"""PostgreSQL's `infinity`: the `run_at` of a job that waits for others."""

EXPIRY_FLAG: Final = "gw:expires:"
"""The beginning of the flag with the time at which a job expires, in microseconds since 1970."""

STEPS_FLAG: Final = "gw:steps"
"""The flag of a job with a key whose steps are kept; a job that is added again has new flags, and starts over."""

# A lone surrogate cannot be encoded as UTF-8, and PostgreSQL's text holds no NUL.
_UNSTORABLE: Final = "[\x00\ud800-\udfff]"

_EXPIRY_IN_JSON: Final = re.compile(rf'"({EXPIRY_FLAG}[0-9]{{1,18}})":')


class JobKeyMode(StrEnum):
    """How `add` treats an existing job with the same key; the values are the schema's own words.

    Example: docs/api/gw_core.md
    """

    REPLACE = "replace"
    """Overwrite the waiting job, its `run_at` included: debouncing."""

    PRESERVE_RUN_AT = "preserve_run_at"
    """Overwrite the waiting job but keep its `run_at`: throttling."""

    UNSAFE_DEDUPE = "unsafe_dedupe"
    """Leave any existing job alone, even a running or permanently failed one; the new one may never run."""


class OnFailure(StrEnum):
    """What becomes of a waiting job when one that it waits for fails permanently."""

    HOLD = "hold"
    """It waits until the other was retried and completed, or was removed."""
    CANCEL = "cancel"
    """It is dropped, with the jobs that wait for it; those that it waited for run on."""
    RUN = "run"
    """The other counts as ended."""


@hides("payload_json")
class Job(msgspec.Struct, frozen=True, gc=False):
    """One row of the queue, as it was when it was claimed or read. Its `repr` does not show the payload.

    `payload_json` is the payload as stored, and empty in jobs that were read without it. `locked_by` is None in the job
    of a task's context and of events, which know the worker: claims do not read it.

    Example: docs/api/gw_core.md
    """

    # A `msgspec.Struct` and not a dataclass: a pool builds tens of thousands of these a second, and a frozen dataclass
    # with this many fields costs seven times as much to construct. Times are kept as seconds since 1970 and become
    # `datetime` when asked for, since decoding three of them took four times as long as the rest of the row. For the
    # same reason the payload and the flags are decoded when asked for.
    id: int
    task: str
    payload_json: str
    attempts: int
    max_attempts: int
    priority: int
    _run_at: float
    _created_at: float
    _updated_at: float
    revision: int
    job_key: str | None = None
    _flags: str | None = None
    queue_id: int | None = None
    queue_name: str | None = None
    last_error: str | None = None
    _locked_at: float | None = None
    locked_by: str | None = None
    _started_at: float | None = None

    @property
    def payload(self) -> Any:
        """The payload as plain Python values, decoded at each access; None if the job was read without it."""
        return msgspec.json.decode(self.payload_json) if self.payload_json else None

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of the flags that are set on the job, without those of gw for `expires_at` and for steps."""
        if not self._flags:
            return ()
        return tuple(flag for flag in msgspec.json.decode(self._flags) if not _is_own(flag))

    @property
    def run_at(self) -> datetime:
        """When the job may run, or might first have run; `datetime.max`, in UTC, while it waits for other jobs."""
        return timestamp(self._run_at)

    @property
    def expires_at(self) -> datetime | None:
        """When the job ends as expired unless it has started by then; None: never."""
        expiry = self._expiry
        return None if expiry is None else timestamp(int(expiry.removeprefix(EXPIRY_FLAG)) / 1_000_000)

    @property
    def _expiry(self) -> str | None:
        """The flag that holds `expires_at`."""
        # Without decoding: threads ask this of each job that has flags, before it starts.
        found = None if self._flags is None else _EXPIRY_IN_JSON.search(self._flags)
        return None if found is None else found[1]

    @property
    def created_at(self) -> datetime:
        """When the job was added."""
        return timestamp(self._created_at)

    @property
    def updated_at(self) -> datetime:
        """When the job was last changed by anything other than a worker."""
        return timestamp(self._updated_at)

    @property
    def locked_at(self) -> datetime | None:
        """When its worker claimed the job, or last renewed the lock; None while no worker has claimed it."""
        return None if self._locked_at is None else timestamp(self._locked_at)

    @property
    def started_at(self) -> datetime | None:
        """When the running attempt was claimed, however often its lock was renewed since; None while none runs."""
        started = self._started
        return None if started is None else timestamp(started)

    @property
    def _started(self) -> float | None:
        return self._locked_at if self._started_at is None else self._started_at

    @property
    def is_last_attempt(self) -> bool:
        """True when a failure of this attempt is permanent."""
        return self.attempts >= self.max_attempts


@hides("payload")
@dataclass(frozen=True, kw_only=True, init=False)
class JobSpec:
    """A job to add; every rule of the schema is checked here, before anything is sent.

    `run_at` is an aware `datetime`, or a `timedelta` counted from the database's clock; `None` means now.
    `payload` is anything JSON can hold (dataclasses, msgspec and pydantic objects included); `None` means `{}`.
    `after` are jobs, or their ids, that have to end first; a delay then counts from the end of the last. If one fails
    permanently, the job waits on (`on_failure="hold"`), is dropped (`cancel`), or takes that one as ended (`run`).
    With `unique_for`, adding the job again within this time returns the one that is there, or was: the one with its
    `job_key` or, without one, its payload.
    With `expires_at`, given as `run_at` is, the job ends as expired, which is a failure, unless it has started by then.
    `slots`, such as `api:4` or `tenant:{tenant_id}:2`, puts the job into one of this many named queues.
    Raises `InvalidJobError` with the field and the limit in its message.

    Example: docs/api/index.md
    """

    task: str
    payload: Any = None
    queue_name: str | None = None
    run_at: datetime | timedelta | None = None
    max_attempts: int | None = None
    job_key: str | None = None
    job_key_mode: JobKeyMode = JobKeyMode.REPLACE
    priority: int | None = None
    flags: Sequence[str] = ()
    after: Sequence[int] | None = None
    on_failure: OnFailure = OnFailure.HOLD
    unique_for: timedelta | None = None
    expires_at: datetime | timedelta | None = None

    # Written out, because the generated one sets every field and takes twice as long: a bulk builds thousands of these.
    # What is not set here is the default of the class.
    def __init__(
        self,
        *,
        task: str,
        payload: Any = None,
        queue_name: str | None = None,
        run_at: datetime | timedelta | None = None,
        max_attempts: int | None = None,
        job_key: str | None = None,
        job_key_mode: KeyMode = JobKeyMode.REPLACE,
        priority: int | None = None,
        flags: Sequence[str] = (),
        after: Sequence[int | Job] | None = None,
        on_failure: OnFailure | str = OnFailure.HOLD,
        unique_for: Duration | None = None,
        expires_at: datetime | timedelta | None = None,
        slots: str | None = None,
    ) -> None:
        if slots is not None:
            queue_name = _queue_of_slot(slots, payload, queue_name)
        _set(self, "task", _checked_text("task identifier", task, MAX_IDENTIFIER_LENGTH))
        if payload is not None:
            _set(self, "payload", payload)
        if queue_name is not None:
            _set(self, "queue_name", _checked_text("queue name", queue_name, MAX_QUEUE_NAME_LENGTH))
        if job_key is not None:
            _set(self, "job_key", _checked_text("job key", job_key, MAX_JOB_KEY_LENGTH))
        if max_attempts is not None:
            _set(self, "max_attempts", _checked_integer("max attempts", max_attempts, 1))
        if priority is not None:
            _set(self, "priority", _checked_integer("priority", priority, SMALLINT_MIN))
        if job_key_mode is not JobKeyMode.REPLACE:
            _set(self, "job_key_mode", _checked_key_mode(job_key_mode, job_key))
        if flags != ():
            _set(self, "flags", _checked_flags(flags))
        if run_at is not None:
            _set(self, "run_at", _checked_time("run_at", run_at))
        if after is not None:
            _set(self, "after", _checked_after(after, self.job_key_mode))
        if on_failure is not OnFailure.HOLD:
            _set(self, "on_failure", _checked_on_failure(on_failure, after))
        if unique_for is not None:
            _set(self, "unique_for", _checked_unique_for(unique_for, after, self.job_key_mode))
        if expires_at is not None:
            _set(self, "expires_at", _checked_expires_at(expires_at, run_at, after))

    def with_payload(self, payload: Any) -> JobSpec:
        """Return the same job with another payload, without checking it again."""
        return self._with(payload=payload)

    def _waiting_for(self, ids: Sequence[int], on_failure: OnFailure) -> JobSpec:
        """Return the same job, which waits for others; raises `InvalidJobError` as `JobSpec` does."""
        return dataclasses.replace(self, after=ids, on_failure=on_failure)

    def _with(self, **changes: Any) -> JobSpec:
        """Return the same job with other values, without checking them."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, **changes)
        return made


_set = object.__setattr__


KeyMode = JobKeyMode | Literal["replace", "preserve_run_at", "unsafe_dedupe"]
"""A job key mode, or its name."""


class JobOptions(TypedDict, total=False):
    """The options of a job by keyword: the fields of `JobSpec` without the task and its payload.

    Example: docs/api/types.md
    """

    queue_name: str | None
    run_at: datetime | timedelta | None
    max_attempts: int | None
    job_key: str | None
    job_key_mode: KeyMode
    priority: int | None
    flags: Sequence[str]
    after: Sequence[int | Job] | None
    on_failure: OnFailure | str
    unique_for: Duration | None
    expires_at: datetime | timedelta | None
    slots: str | None


class AddOptions(JobOptions, total=False):
    """The options of `Client.add` by keyword: those of a job, and the caller's connection.

    Example: docs/api/types.md
    """

    conn: object | None


def job_spec(
    task: str | JobSpec | Callable[..., object], payload: Any = None, **options: Unpack[JobOptions]
) -> JobSpec:
    """Return the job to add: of an identifier, of a task's function, or a whole spec as it is.

    Raises `InvalidJobError` for a function that is not a task, for a payload that the task could not read, and for
    options beside a whole spec.
    """
    if isinstance(task, JobSpec):
        if payload is not None or options:
            raise InvalidJobError("give the payload and the options inside the JobSpec, not beside it")
        return task
    if isinstance(task, str) or not callable(task):
        return JobSpec(task=task, payload=payload, **options)
    spec: JobSpec = task_behind(task).job(payload, **options)
    return spec


def encode_payload(payload: Any) -> str:
    """Return the payload as the JSON text to store; `None` becomes `{}` as in Graphile Worker.

    Raises `InvalidJobError` when it cannot be written as JSON, NaN and Infinity included, or holds a character
    PostgreSQL cannot keep.
    """
    return "{}" if payload is None else json_text(payload)


def json_text(value: Any, *, what: str = "payload") -> str:
    """Return a value as the JSON text to store; `what` names it in errors. Raises as `encode_payload` does."""
    # A payload is what a model is made from, so it holds no computed fields; a result holds them.
    write_model, hook = _TO_READ if what == "payload" else _TO_SHOW
    try:
        written = write_model(value) if _is_model(value) else msgspec.json.encode(value, enc_hook=hook)
        text = written.decode()
        # Both are encoded as null. Searching for that is much cheaper than checking every value of every payload.
        if "null" in text or "NaN" in text or "Infinity" in text:
            _reject_not_finite(value, what)
    except InvalidJobError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidJobError(f"the {what} cannot be written as JSON: {error}") from error
    if "\\u0000" in text:
        check_payload_text(text, what)
    return text


def _plain(write_model: Callable[[Any], bytes], value: Any) -> Any:
    """Return a value that msgspec does not know as one that it does."""
    # A text or number of a subclass, such as Django's `SafeString`, which may override what `str(value)` calls.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__pos__(value)
    if isinstance(value, float):
        return float.__pos__(value)
    if _is_model(value):
        return msgspec.Raw(write_model(value))
    if hasattr(value, "get_secret_value"):
        raise TypeError(_NO_ASTERISKS)
    if (pydantic := sys.modules.get("pydantic_core")) is not None:
        with suppress(pydantic.PydanticSerializationError):
            return pydantic.to_jsonable_python(value)  # its own types, such as `AnyUrl`
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


# -- models of pydantic, which is not imported ---------------------------------------------------------------------

_NO_ASTERISKS: Final = "a secret is written as asterisks, so the task could not read it; pass a reference to it instead"
_ASTERISKS: Final = b"**********"


def _is_model(value: Any) -> bool:
    return hasattr(value, "model_dump_json")


def _model_to_read(value: Any) -> bytes:
    return _without_secrets(value, value.model_dump_json(round_trip=True).encode())


def _model_to_show(value: Any) -> bytes:
    return _without_secrets(value, value.model_dump_json().encode())


_TO_READ: Final = (_model_to_read, partial(_plain, _model_to_read))
_TO_SHOW: Final = (_model_to_show, partial(_plain, _model_to_show))


def _without_secrets(value: Any, written: bytes) -> bytes:
    if _ASTERISKS in written and _holds_secret(value.model_dump()):
        raise TypeError(_NO_ASTERISKS)
    return written


def _holds_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_secret, (*value, *value.values())))
    if isinstance(value, list | tuple | Set):
        return any(map(_holds_secret, value))
    is_secret = hasattr(value, "get_secret_value")
    return is_secret or any(_holds_secret(getattr(value, each)) for each in _field_names(value))


# -- numbers that JSON cannot hold ---------------------------------------------------------------------------------


def _reject_not_finite(value: Any, what: str) -> None:
    """Raise `InvalidJobError` when a float in the value is NaN or infinite; for values that JSON can hold else."""
    if isinstance(value, float):
        if not isfinite(value):
            raise InvalidJobError(f"the {what} contains {value!r}, which JSON cannot hold; give null or a text instead")
    elif value is None or isinstance(value, str | int):
        return
    elif isinstance(value, Mapping):
        for each in value.values():
            _reject_not_finite(each, what)
    elif isinstance(value, list | tuple | Set):
        for each in value:
            _reject_not_finite(each, what)
    elif _is_model(value):
        _reject_not_finite(value.model_dump(), what)
    else:
        for name in _field_names(value):
            _reject_not_finite(getattr(value, name, None), what)


def _field_names(value: Any) -> Sequence[str]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return [each.name for each in dataclasses.fields(value)]
    return [each.name for each in getattr(type(value), "__attrs_attrs__", ())]


def check_payload_text(text: str, what: str = "payload") -> None:
    """Reject JSON text that PostgreSQL could store but no worker could pass to a task.

    `json` keeps the escape \\u0000 as written, and fails only when something reads it as text.
    """
    position = text.find("\\u0000")
    while position != -1:
        backslashes = len(text[:position]) - len(text[:position].rstrip("\\"))
        if backslashes % 2 == 0:
            raise InvalidJobError(f"the {what} contains \\u0000, which PostgreSQL cannot hold in a text; remove it")
        position = text.find("\\u0000", position + 1)


def batch_spec(
    task: str | JobSpec | Callable[..., object], items: Sequence[Any], **options: Unpack[JobOptions]
) -> JobSpec:
    """Return the batch job to add; raises as `job_spec` and `batch_items` do."""
    if isinstance(task, JobSpec) and not items and not options:
        batch_items(task.payload)
        return task
    return job_spec(task, batch_items(items), **options)


def batch_items(items: Sequence[Any]) -> list[Any]:
    """Return the payload of a batch job; raises `InvalidJobError` unless it is a list with at least one item."""
    # The list of a mapping would be its keys, and that of a set would have no order.
    if isinstance(items, str | bytes | Mapping | Set) or not isinstance(items, Iterable) or not items:
        raise InvalidJobError("a batch job needs a list with at least one item")
    return list(items)


def job_specs(specs: Iterable[JobSpec]) -> list[JobSpec]:
    """Return the jobs to add as a list; raises `InvalidJobError` for anything that is not a `JobSpec`."""
    is_iterable = isinstance(specs, Iterable)
    listed: list[Any] = list(specs) if is_iterable else [specs]
    wrong = [type(each).__name__ for each in listed if not isinstance(each, JobSpec)]
    if wrong or not is_iterable:
        given = wrong[0] if wrong else "a single JobSpec"
        raise InvalidJobError(
            f"several jobs are added as a list of JobSpec, and {given} was given; build each with JobSpec(task=…)"
        )
    return listed


def named(kind: type[E], name: str, what: str, error: type[InvalidInputError] = InvalidInputError) -> E:
    """Return the member of that name; raises `error`, which lists the names, for a name that is none."""
    try:
        return kind(name)
    except ValueError:
        raise error(f"{name!r} is not {what}; give one of {', '.join(kind)}") from None


def check_count(what: str, value: int | None, smallest: int) -> None:
    """Reject a number that does not fit the schema's small integers; None passes."""
    if value is not None:
        _checked_integer(what, value, smallest)


def listed_ids(given: int | Iterable[int]) -> list[int]:
    """Return one id or several as a list; raises `InvalidJobError` for anything but job ids."""
    is_one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    ids: list[Any] = [given] if is_one else list(given)  # type: ignore[arg-type]
    for job_id in ids:
        if isinstance(job_id, bool) or not isinstance(job_id, int) or not 0 < job_id < 2**63:
            shown = repr(job_id) if isinstance(job_id, int | float | str) else type(job_id).__name__
            raise InvalidJobError(f"{shown} is not the id of a job; ids are whole numbers from 1")
    return ids


def check_one_named(job_id: int | None, job_key: str | None) -> None:
    """Raise `InvalidInputError` unless one job is named, by its id or by its key."""
    if (job_id is None) == (job_key is None):
        raise InvalidInputError("name one job: give either its id or its key")


def timestamp(epoch: float) -> datetime:
    """Return seconds since 1970 as a UTC time; PostgreSQL's infinities become Python's minimum and maximum."""
    try:
        return datetime.fromtimestamp(epoch, UTC)
    except (OverflowError, ValueError):
        return END_OF_TIME if epoch > 0 else datetime.min.replace(tzinfo=UTC)


def _queue_of_slot(slots: str, payload: Any, queue_name: str | None) -> str:
    if queue_name is not None:
        raise InvalidJobError("a job with slots is in one of their queues; leave out queue_name")
    return SlotLimit.parse(slots).queue_for(payload)


def _checked_text(what: str, value: str, longest: int) -> str:
    if not isinstance(value, str):
        raise InvalidJobError(f"the {what} must be a text, not {type(value).__name__}")
    if not value:
        raise InvalidJobError(f"the {what} is empty; give it at least one character")
    if len(value) > longest:
        raise InvalidJobError(f"the {what} is {len(value)} characters long; at most {longest} are allowed")
    if not (value.isascii() and value.isprintable()) and re.search(_UNSTORABLE, value):
        raise InvalidJobError(f"the {what} holds a character PostgreSQL cannot store (NUL or a lone surrogate)")
    return value


def _checked_integer(what: str, value: int, smallest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidJobError(f"{what} must be a whole number, not {value!r}")
    if not smallest <= value <= SMALLINT_MAX:
        raise InvalidJobError(f"{what} is {value}; it must lie between {smallest} and {SMALLINT_MAX}")
    return value


def _checked_key_mode(given: JobKeyMode | str, job_key: str | None) -> JobKeyMode:
    mode = named(JobKeyMode, given, "a job key mode", InvalidJobError)
    if mode is not JobKeyMode.REPLACE and job_key is None:
        raise InvalidJobError(f"job key mode '{mode}' was given without a job key; give job_key as well")
    return mode


def _checked_after(after: Sequence[int | Job], mode: JobKeyMode) -> tuple[int, ...]:
    if isinstance(after, Job | int):
        raise InvalidJobError("after takes a list of jobs or of their ids; put the one job into a list")
    if not isinstance(after, Iterable):
        raise InvalidJobError(f"after takes a list of jobs or of their ids, not {type(after).__name__}")
    ids = listed_ids(each.id if isinstance(each, Job) else each for each in after)
    if mode is not JobKeyMode.REPLACE:
        raise InvalidJobError(f"a job that waits for others takes the job key mode 'replace', not '{mode}'")
    return tuple(dict.fromkeys(ids))


def _checked_on_failure(given: OnFailure | str, after: object) -> OnFailure:
    if after is None:
        raise InvalidJobError("on_failure was given without jobs to wait for; give after as well")
    return named(OnFailure, given, "a value of on_failure", InvalidJobError)


def _checked_unique_for(given: Duration, after: object, mode: JobKeyMode) -> timedelta:
    period = as_duration("unique_for", given, InvalidJobError)
    if not timedelta(0) < period <= MAX_UNIQUE:
        raise InvalidJobError("unique_for must be more than 0 and at most ten years")
    if after is not None or mode is not JobKeyMode.REPLACE:
        raise InvalidJobError("a job that is unique for a time takes neither after nor a job key mode but 'replace'")
    return period


def unique_key(spec: JobSpec, payload: str) -> str:
    """Return what a job is unique by: its job key, or else its payload, whatever the order of its fields."""
    if spec.job_key is not None:
        return f"{spec.task} key {spec.job_key}"
    import hashlib  # loads OpenSSL, which takes 2 ms; few jobs need it

    with suppress(ValueError, RecursionError):  # which the server rejects
        payload = json.dumps(json.loads(payload), sort_keys=True)
    return f"{spec.task} payload {hashlib.sha256(payload.encode()).hexdigest()}"


def _checked_flags(flags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(flags, str) or not isinstance(flags, Iterable):
        kind = "the text " if isinstance(flags, str) else ""
        raise InvalidJobError(f"flags must be a list of names, not {kind}{flags!r}")
    checked = tuple(_checked_text("flag", flag, MAX_JOB_KEY_LENGTH) for flag in flags)
    if any(flag.startswith(EXPIRY_FLAG) for flag in checked):
        raise InvalidJobError(f"flags that begin with {EXPIRY_FLAG} are gw's own; give expires_at instead")
    if STEPS_FLAG in checked:
        raise InvalidJobError(f"the flag {STEPS_FLAG} is gw's own; leave it out")
    return checked


def _is_own(flag: str) -> bool:
    return flag == STEPS_FLAG or flag.startswith(EXPIRY_FLAG)


def _checked_expires_at(
    expires_at: datetime | timedelta, run_at: datetime | timedelta | None, after: object
) -> datetime | timedelta:
    checked = _checked_time("expires_at", expires_at)
    if isinstance(checked, timedelta) and checked <= timedelta(0):
        raise InvalidJobError("expires_at must lie after now")
    # With `after`, a delay of run_at counts from a later time.
    if type(run_at) is type(checked) and after is None and checked <= run_at:  # type: ignore[operator]
        raise InvalidJobError("expires_at must lie after run_at, or the job could never start")
    return checked


def _checked_time(what: str, given: datetime | timedelta) -> datetime | timedelta:
    if isinstance(given, timedelta):
        return check_from_now(what, given, InvalidJobError)
    # A date or a text would be read by the server, in its own time zone.
    if not isinstance(given, datetime):
        raise InvalidJobError(
            f"{what} must be an aware datetime or a timedelta, not {type(given).__name__}; "
            "give one such as datetime.now(timezone.utc)"
        )
    if given.utcoffset() is None:
        raise InvalidJobError(f"{what} has no time zone; give an aware datetime such as datetime.now(timezone.utc)")
    return given
