"""The statements that add and remove jobs, with their values, for any driver to run."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

import msgspec

from gw_core.domain.errors import InvalidJobError
from gw_core.domain.hidden_fields import hides
from gw_core.domain.job.job import Job, JobKeyMode, JobSpec, encode_payload, unique_key
from gw_core.postgres.connection.row_security import uses_of, values_of_uses
from gw_core.postgres.connection.statements import numbered_text, query

BULK: Final = 5_000
"""Jobs in one statement of a bulk: more jobs gain nothing and only need more memory."""

FINITE: Final = {
    datetime.max.replace(tzinfo=UTC): datetime.max.replace(tzinfo=UTC) - timedelta(microseconds=1),
    datetime.min.replace(tzinfo=UTC): datetime.min.replace(tzinfo=UTC) + timedelta(microseconds=1),
}
"""What asyncpg is given for times that it would write as `infinity`, the time of a job that waits for others."""

EXPIRES: Final[dict[str, str]] = {"EXPIRES": "true"}


@hides("values")
class Call(msgspec.Struct, frozen=True):
    """One statement of sql/queries and its values: texts, numbers, times, lists and None, which every driver adapts."""

    statement: str
    values: Mapping[str, Any] = {}
    names: Mapping[str, str] = {}
    """Values of the file's variables."""

    def visibility(self, schema: str) -> Call | None:
        """Return the statement that finds which rows row security hides from this one; None if it uses no rows."""
        uses = uses_of(self.statement, **self.names)
        return Call("hidden_rows", values_of_uses(uses, schema)) if uses else None

    def named(self, schema: str) -> tuple[str, Mapping[str, Any]]:
        """Return text and values for drivers that write values as `%(name)s`."""
        return query(self.statement, schema, **self.names), self.values

    def numbered(self, schema: str) -> tuple[str, tuple[Any, ...]]:
        """Return text and values for asyncpg, which writes values as `$1`."""
        text, arranged = numbered_text(self.statement, schema, **self.names)
        values = arranged(self.values)
        return text, tuple(FINITE.get(each, each) if isinstance(each, datetime) else each for each in values)


class RemovedJob(msgspec.Struct, frozen=True):
    """A job after it was removed by its key.

    Example: docs/api/parts.md
    """

    job: Job

    @property
    def was_running(self) -> bool:
        """True when the job is still running: it lost its key and will not be tried again."""
        return self.job.locked_by is not None

    @property
    def was_deleted(self) -> bool:
        """True when the job is gone; one that ran when it was removed stays, without its key, perhaps ended by now."""
        return self.job.job_key is not None


def add_call(spec: JobSpec, payload: str | None = None) -> Call:
    """Return the statement that adds one job; its row is a `Job`.

    `payload` is JSON text that replaces the encoding of the spec's own payload.
    """
    if spec.after is not None:
        return _waiting_call(spec, spec.after, payload)
    if spec.unique_for is not None:
        return _unique_call([spec], payload, is_whole=True)
    run_at, delay = run_at_or_delay(spec.run_at)
    values = {
        "identifier": spec.task,
        "payload": encode_payload(spec.payload) if payload is None else payload,
        "queue_name": spec.queue_name,
        "run_at": run_at,
        "delay_seconds": delay,
        "max_attempts": spec.max_attempts,
        "job_key": spec.job_key,
        "priority": spec.priority,
        "flags": list(spec.flags) or None,
        "job_key_mode": spec.job_key_mode._value_,
    }
    if spec.expires_at is not None:
        expires_at, expires_in = run_at_or_delay(spec.expires_at)
        return Call("add_expiring_job", {**values, "expires_at": expires_at, "expires_in": expires_in})
    can_be_there = spec.job_key_mode is JobKeyMode.UNSAFE_DEDUPE
    return Call("add_job_unless_there" if can_be_there else "add_job", values)


def _waiting_call(spec: JobSpec, after: Sequence[int], payload: str | None) -> Call:
    element = job_element(spec, payload=payload)
    values = {
        "identifier": spec.task,
        "queue_name": spec.queue_name,
        "job": msgspec.json.encode(element).decode(),
        "after": list(after),
        "on_failure": spec.on_failure._value_,
    }
    return Call("add_waiting_job", values, _expiring([spec]))


def _unique_call(specs: Sequence[JobSpec], payload: str | None = None, *, is_whole: bool = False) -> Call:
    names = _expiring(specs) | ({"WHOLE": "true"} if is_whole else {})
    jobs = [_unique_element(spec, spec.unique_for, payload) for spec in specs if spec.unique_for is not None]
    return Call("add_unique_jobs", {"jobs": msgspec.json.encode(jobs).decode()}, names)


def _unique_element(spec: JobSpec, period: timedelta, payload: str | None) -> _UniqueElement:
    element = job_element(spec, payload=payload)
    return _UniqueElement(element, unique_key(spec, bytes(element.payload).decode()), period.total_seconds())


def _expiring(specs: Sequence[JobSpec]) -> dict[str, str]:
    return EXPIRES if any(spec.expires_at is not None for spec in specs) else {}


def bulk_calls(specs: Sequence[JobSpec]) -> Iterator[Call]:
    """Yield the statements that add these jobs; the first column of each row is a job's id.

    One statement takes at most `BULK` jobs that treat their keys alike, and no key twice.
    """
    try:
        yield from _bulk_calls(specs)
    except InvalidJobError as error:
        raise _naming_its_job(error, specs) from error.__cause__


def _naming_its_job(error: InvalidJobError, specs: Sequence[JobSpec]) -> InvalidJobError:
    """Return an error that names the first job whose payload cannot be written."""
    for number, spec in enumerate(specs, start=1):
        try:
            encode_payload(spec.payload)
        except InvalidJobError:
            key = "" if spec.job_key is None else f" and the key {spec.job_key!r}"
            return InvalidJobError(f"{error} (job {number} of {len(specs)}, with the task {spec.task!r}{key})")
    return error


def _bulk_calls(specs: Sequence[JobSpec]) -> Iterator[Call]:
    for (mode, waits, is_unique), alike in groupby(specs, key=_treatment):
        if waits or mode is JobKeyMode.UNSAFE_DEDUPE:  # which the schema's bulk function does not support
            yield from map(add_call, alike)
            continue
        for part in _parts(alike):
            if is_unique:
                yield _unique_call(part)
                continue
            document = msgspec.json.encode([job_element(spec) for spec in part]).decode()
            values = {"jobs": document, "preserve_run_at": mode is JobKeyMode.PRESERVE_RUN_AT}
            yield Call("add_jobs", values, _expiring(part))


def _treatment(spec: JobSpec) -> tuple[JobKeyMode, bool, bool]:
    """Return what jobs of one statement have in common: what their keys do, if they wait, and if they are unique."""
    return spec.job_key_mode, spec.after is not None, spec.unique_for is not None


def is_one_statement(specs: Sequence[JobSpec]) -> bool:
    """Return whether `bulk_calls` needs one statement for certain, which is all or nothing without a transaction."""
    return len(specs) <= BULK and all(
        spec.job_key is None and spec.after is None and spec.unique_for is None for spec in specs
    )


def end_members_call(ids: Sequence[int] | None) -> Call:
    """Return the statement that takes note that jobs have ended for which others wait; None: checks all."""
    return Call("end_members", {"ids": None if ids is None else list(ids), "tasks": [], "keep_seconds": []})


def removed_call(job: Job) -> Call:
    """Return the statement that adds a removed job to history, if that keeps it."""
    values = {
        "id": job.id,
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "task": job.task,
        "queue_name": job.queue_name,
        "key": job.job_key,
        "last_error": job.last_error,
        "created_at": job._created_at,
    }
    return Call("record_removed", values)


def registering_tasks(identifiers: Iterable[str]) -> Generator[Call, Sequence[Any], dict[int, str]]:
    """Make the task identifiers known and return them by their ids."""
    names = sorted(set(identifiers))
    while True:
        known: dict[int, str] = dict((yield Call("register_tasks", {"identifiers": names})))
        # A task that another session creates concurrently is neither inserted here nor visible in this snapshot.
        if len(known) >= len(names):
            return known


def get_call(job_id: int | None, job_key: str | None) -> Call:
    """Return the statement that reads one job by its id or, without one, by its key.

    Its row, if there is one, has the fields of a `Job`, and then its state.
    """
    ids, key = ([], job_key) if job_id is None else ([job_id], None)
    return Call("find_jobs", {"ids": ids, "key": key, "with_payload": True})


@hides("payload")
class _Element(msgspec.Struct, omit_defaults=True, gc=False):
    """A job in the document; the server spends time on every field, so those that are None are left out."""

    task: str
    payload: msgspec.Raw
    queue_name: str | None = None
    run_at: datetime | None = None
    delay: float | None = None
    max_attempts: int | None = None
    job_key: str | None = None
    priority: int | None = None
    flags: Sequence[str] | None = None
    job_key_mode: JobKeyMode | None = None
    expires_at: datetime | None = None
    expires_in: float | None = None


@hides("job")
class _UniqueElement(msgspec.Struct, gc=False):
    """A job in the document of those that are unique for a time."""

    job: _Element
    unique_key: str
    period_seconds: float


def job_element(spec: JobSpec, *, payload: str | None = None, mode: JobKeyMode | None = None) -> _Element:
    """Return a job as an element of the document that statements take; `payload` replaces the spec's, as JSON text.

    Statements whose jobs treat their keys differently need the `mode` of each.
    """
    run_at, delay = run_at_or_delay(spec.run_at)
    expires_at, expires_in = (None, None) if spec.expires_at is None else run_at_or_delay(spec.expires_at)
    return _Element(
        spec.task,
        msgspec.Raw(encode_payload(spec.payload) if payload is None else payload.encode()),
        spec.queue_name,
        run_at,
        delay,
        spec.max_attempts,
        spec.job_key,
        spec.priority,
        spec.flags or None,
        mode,
        expires_at,
        expires_in,
    )


def _parts(specs: Iterator[JobSpec]) -> Iterator[list[JobSpec]]:
    part: list[JobSpec] = []
    keys: set[str] = set()
    for spec in specs:
        if len(part) == BULK or spec.job_key in keys:
            yield part
            part, keys = [], set()
        part.append(spec)
        if spec.job_key is not None:
            keys.add(spec.job_key)
    yield part


def run_at_or_delay(run_at: datetime | timedelta | None) -> tuple[datetime | None, float | None]:
    """Return a time, or the seconds to count from the database's clock."""
    if isinstance(run_at, timedelta):
        return None, run_at.total_seconds()
    return run_at, None
