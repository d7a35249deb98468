"""Check the jobs that code under test has added."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict, Unpack

import msgspec

from gw_core import Job, JobSpec
from gw_core.errors import InvalidInputError
from gw_core.front_ends import END_OF_TIME, as_duration, encode_payload
from gw_core.runner.synchronous import DEFAULT_SCHEMA, task_name, waiting_jobs
from gw_core.testing.clock import Clock
from gw_core.types import Duration

SHOWN_JOBS: Final = 5
SHOWN_PAYLOAD: Final = 200
ANY: Final = object()
"""The default of a condition that may be None."""

RunAt = datetime | timedelta | tuple[datetime, datetime] | None
WantedTask = str | JobSpec | Callable[..., object]


class Conditions(TypedDict, total=False):
    """The conditions of an assertion beside task and payload."""

    queue_name: str | None
    job_key: str | None
    priority: int
    run_at: RunAt
    now: Clock | datetime | None


def enqueued(conn: object, task: WantedTask | None = None, *, schema: str = DEFAULT_SCHEMA) -> list[Job]:
    """Return the waiting jobs that the transaction of `conn` sees, in the order in which workers take them.

    Jobs of later are included; running ones and those without an attempt left are not. `conn` is what `Client.add`
    takes, and `task` what it takes, too.

    Example: docs/guide/testing.md
    """
    return waiting_jobs(conn, task=None if task is None else task_name(task), schema=schema)


def assert_enqueued(
    conn: object,
    task: WantedTask,
    payload: Any = ANY,
    *,
    count: int | None = None,
    within: Duration = timedelta(seconds=1),
    schema: str = DEFAULT_SCHEMA,
    **conditions: Unpack[Conditions],
) -> list[Job]:
    """Assert that a job like this is waiting, or exactly `count` of them, and return those that are.

    `task` is an identifier, a function, a task object or a `JobSpec`. `payload` may be a part: of an object, the keys
    that are given must be equal, at any depth. `run_at` is a time, a delay counted from when the job was added (from
    `now`, if given), or a pair of times; `within` is its tolerance.

    Example: docs/guide/testing.md
    """
    __tracebackhide__ = True
    return check_enqueued(waiting_jobs(conn, schema=schema), wanted(task, payload, within, conditions), count)


def refute_enqueued(
    conn: object,
    task: WantedTask,
    payload: Any = ANY,
    *,
    within: Duration = timedelta(seconds=1),
    schema: str = DEFAULT_SCHEMA,
    **conditions: Unpack[Conditions],
) -> None:
    """Assert that no job like this is waiting; the conditions are those of `assert_enqueued`.

    Example: docs/guide/testing.md
    """
    __tracebackhide__ = True
    check_not_enqueued(waiting_jobs(conn, schema=schema), wanted(task, payload, within, conditions))


def check_enqueued(jobs: Sequence[Job], wanted: Wanted, count: int | None) -> list[Job]:
    """Return the jobs that are as wanted; raises `AssertionError` if they are not `count`, or none."""
    __tracebackhide__ = True
    found = [job for job in jobs if not wanted.differences(job)]
    if found if count is None else len(found) == count:
        return found
    expected = "a waiting job" if count is None else f"{count} waiting jobs"
    number = "there is none" if not found else f"there are {len(found)}"
    raise AssertionError(f"expected {expected} {wanted}, but {number}\n{_nearest(wanted, jobs)}")


def check_not_enqueued(jobs: Sequence[Job], wanted: Wanted) -> None:
    """Raise `AssertionError` if one of the jobs is as wanted."""
    __tracebackhide__ = True
    found = [job for job in jobs if not wanted.differences(job)]
    if found:
        listed = "\n".join(f"  {_line(job)}" for job in found[:SHOWN_JOBS])
        raise AssertionError(f"expected no waiting job {wanted}, but there are {len(found)}:\n{listed}")


def wanted(task: WantedTask, payload: Any, within: Duration, conditions: Conditions) -> Wanted:
    """Return the conditions of an assertion. Raises `InvalidInputError` for what is no task and no condition."""
    if unknown := conditions.keys() - Conditions.__annotations__.keys():
        raise TypeError(f"an assertion has no condition {min(unknown)!r}")
    given: dict[str, Any] = {"queue_name": ANY, "job_key": ANY, "priority": ANY, "run_at": None}
    if isinstance(task, JobSpec):
        given |= {name: value for name in given if (value := getattr(task, name)) is not None}
        payload = ({} if task.payload is None else task.payload) if payload is ANY else payload
    given |= {"now": None, **conditions, "within": as_duration("within", within)}
    given["now"] = _time(given["now"])
    return Wanted(task=task_name(task), payload=payload, **given)


def _time(now: Clock | datetime | None) -> datetime | None:
    return now.now() if isinstance(now, Clock) else now


class Wanted(msgspec.Struct, frozen=True):
    """The conditions of an assertion."""

    task: str
    payload: Any
    queue_name: Any
    job_key: Any
    priority: Any
    run_at: RunAt
    within: timedelta
    now: datetime | None

    def differences(self, job: Job) -> list[str]:
        """Return in what a job differs."""
        pairs = (("queue_name", job.queue_name), ("job_key", job.job_key), ("priority", job.priority))
        differing = [name for name, value in pairs if getattr(self, name) is not ANY and getattr(self, name) != value]
        if job.task != self.task:
            differing.insert(0, "task")
        if self.payload is not ANY:
            differing.extend(_payload_differences("payload", self.payload, job.payload))
        if not self._is_in_time(job):
            differing.append("run_at")
        return differing

    def _is_in_time(self, job: Job) -> bool:
        match self.run_at:
            case None:
                return True
            case (start, end):
                return start - self.within <= job.run_at <= end + self.within
            case timedelta():
                return abs(job.run_at - (self.now or job.created_at) - self.run_at) <= self.within
            case _:
                return abs(job.run_at - self.run_at) <= self.within

    def __str__(self) -> str:
        fields = ("payload", "queue_name", "job_key", "priority")
        given = [f"{name}={getattr(self, name)!r}" for name in fields if getattr(self, name) is not ANY]
        given += [f"run_at={self.run_at}"] if self.run_at is not None else []
        return f"of the task {self.task!r}" + (f" with {', '.join(given)}" if given else "")


def _payload_differences(path: str, wanted: Any, actual: Any) -> Iterator[str]:
    """Yield the paths at which a payload differs from the wanted part."""
    wanted = _as_read(wanted)
    if isinstance(wanted, Mapping) and isinstance(actual, dict):
        for key, value in wanted.items():
            if str(key) in actual:
                yield from _payload_differences(f"{path}.{key}", value, actual[str(key)])
            else:
                yield f"{path}.{key}"
    elif isinstance(wanted, list | tuple) and isinstance(actual, list) and len(wanted) == len(actual):
        for index, (one, other) in enumerate(zip(wanted, actual, strict=True)):
            yield from _payload_differences(f"{path}[{index}]", one, other)
    elif wanted != actual:
        yield path


def _as_read(value: Any) -> Any:
    """Return an object as the JSON that is stored for it, such as a model's; containers and JSON as they are."""
    if value is None or isinstance(value, Mapping | list | tuple | str | int | float):
        return value
    return _as_stored(value)


def _as_stored(value: Any) -> Any:
    """Return a value as it comes back from JSON; unchanged if JSON cannot hold it, as `unittest.mock.ANY`."""
    if value is None:
        return None
    try:
        return json.loads(encode_payload(value))
    except (InvalidInputError, TypeError, ValueError):
        return value


def _nearest(wanted: Wanted, jobs: Sequence[Job]) -> str:
    """Return the lines of a failure message that show the jobs with the fewest differences."""
    if not jobs:
        return "no job is waiting"
    ranked = sorted(((wanted.differences(job), job) for job in jobs), key=lambda pair: _rank(pair[0]))
    lines = [f"  {_line(job)}" + (f"  <- differs in {', '.join(diff)}" if diff else "") for diff, job in ranked]
    more = [f"  and {len(jobs) - SHOWN_JOBS} more"] if len(jobs) > SHOWN_JOBS else []
    return "\n".join([f"the nearest of {len(jobs)} waiting jobs:", *lines[:SHOWN_JOBS], *more])


def _rank(differences: Sequence[str]) -> tuple[bool, int]:
    return "task" in differences, len(differences)


def _line(job: Job) -> str:
    payload = job.payload_json if len(job.payload_json) <= SHOWN_PAYLOAD else f"{job.payload_json[:SHOWN_PAYLOAD]}…"
    named = (("queue_name", job.queue_name), ("job_key", job.job_key), ("priority", job.priority or None))
    fields = "".join(f" {name}={value!r}" for name, value in named if value is not None)
    time = "waits for other jobs" if job.run_at == END_OF_TIME else f"run_at={job.run_at.isoformat()}"
    return f"{job.id}: {job.task} {payload}{fields} {time}"
