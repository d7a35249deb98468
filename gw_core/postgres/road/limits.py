"""Set and read the limits of tasks, and claim within them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from hashlib import md5
from typing import Any

import msgspec
from msgspec.structs import replace

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import timestamp
from gw_core.domain.rules.pause import PauseResult
from gw_core.domain.rules.task_limit import LimitRoom, TaskLimit
from gw_core.postgres.connection.callers_connection import Rows
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.row_security import rows, visible_rows
from gw_core.postgres.connection.statement_steps import Operation, Steps
from gw_core.postgres.connection.statements import query
from gw_core.postgres.road.action_records import check_by, recording
from gw_core.postgres.road.add_calls import Call, registering_tasks
from gw_core.postgres.road.pauses import changing, usable
from gw_core.postgres.schema.schema_state import TABLES_STEP, check, checked


def listing(schema: str) -> Operation[Sequence[TaskLimit]]:
    """Return the limits by task; none in a schema without gw's tables."""
    state = yield from checked(schema)
    return [limit_of(row) for row in (yield Call("limit_list"))] if TABLES_STEP in state.own_present else []


def setting(
    limit: TaskLimit, schema: str, timeout: timedelta, *, by: str | None, in_transaction: bool
) -> Operation[PauseResult]:
    """Set the limit of a task; `in_transaction` of the caller's, no index is built or dropped. Raises our errors."""
    check_by(by)
    if in_transaction and limit.field is not None:
        raise InvalidInputError("a limit by field needs an index, which no transaction can build; leave conn out")
    yield from usable(schema, timeout)
    columns = _limit_columns(limit)
    change = Call("limit_set", {**columns, "by": by})
    record = partial(_record, columns, by, schema)
    before = None if limit.field is None else partial(_build_index, limit.task, limit.field, schema)
    after = None if in_transaction else partial(_match_indexes, limit.task, schema)
    return (yield from changing(change, timeout, before=before, after=after, record=record))


def removing(
    task: str, schema: str, timeout: timedelta, *, by: str | None, in_transaction: bool
) -> Operation[PauseResult]:
    """Remove the limit of a task."""
    check_by(by)
    yield from usable(schema, timeout)
    after = None if in_transaction else partial(_match_indexes, task, schema)
    record = partial(_record, {"task": task, "off": True}, by, schema)
    return (yield from changing(Call("limit_delete", {"task": task}), timeout, after=after, record=record))


def _record(limit: Mapping[str, Any], by: str | None, schema: str, changed: Rows) -> Steps[None]:
    details = {name: value for name, value in limit.items() if name != "task"}
    yield from recording("limit", by, schema, targets=[f"task:{limit['task']}" for _ in changed], **details)


def list_limits(connection: Connection, schema: str) -> Sequence[TaskLimit]:
    """Return the limits by task; none in a schema without gw's tables."""
    if TABLES_STEP not in check(connection, schema).own_present:
        return []
    return [limit_of(row) for row in visible_rows(connection, schema, "limit_list")]


class LimitLock(msgspec.Struct, frozen=True):
    """The limit of a task, locked by this transaction: the field that it counts by, and whether its index is there."""

    field: str | None
    has_index: bool


@contextmanager
def locked_limit(connection: Connection, schema: str, *, task: str, task_id: int) -> Iterator[LimitLock | None]:
    """Lock the limit of a task for the block, in a transaction; None: another worker has it locked, or it is gone."""
    with translated(schema), connection.transaction():
        found = rows(connection, query("limit_lock", schema), {"task": task, "task_id": task_id})
        yield LimitLock(*found[0][2:]) if found else None


def read_room(connection: Connection, schema: str, *, task: str, task_id: int) -> tuple[LimitRoom, datetime | None]:
    """Return what a locked limit allows now, and when that was read."""
    [row] = rows(connection, query("limit_room", schema), {"task": task, "task_id": task_id})
    return LimitRoom(free=row[0], tokens=row[1], tokens_per_second=row[2], bucket_size=row[3]), row[4]


def spend_room(
    connection: Connection, schema: str, task: str, room: LimitRoom, *, jobs: int, starts: int, read_at: datetime | None
) -> LimitRoom:
    """Take `starts` tokens for this many claimed `jobs` from a locked limit, and return what it allows then."""
    if not jobs:
        return room
    tokens = None if room.tokens is None else room.tokens - starts
    rows(connection, query("limit_spend", schema), {"task": task, "tokens": tokens, "filled_at": read_at})
    return replace(room, tokens=tokens, free=None if room.free is None else room.free - jobs)


def forget_full_buckets(connection: Connection, schema: str, task: str) -> None:
    """Delete what is known of values that may start as many jobs as any other; the limit is locked."""
    connection.execute(query("limit_forget", schema), {"task": task})


# -- the index for a limit by a field, which can only be built and dropped outside of a transaction -----------------


def _build_index(task: str, field: str, schema: str) -> Steps[None]:
    """Build the index of a field if it is missing, one session at a time. Only the owner of the queue may."""
    while True:
        task_id, found = yield from _indexes(task, schema)
        known = {name: is_usable for name, is_usable, _ in found}
        name = _index_name(task_id, field)
        if known.get(name):
            return
        if (yield Call("limit_index_wait", {"schema": schema})):
            continue
        if name in known:  # what a build that was interrupted has left
            yield Call("limit_index_drop", names={"INDEX": name})
        # Builds nothing if another session has begun the same in between; that build is then awaited above.
        yield Call("limit_index_build", names={"TASK": str(task_id), "FIELD": field, "INDEX": name})


def _match_indexes(task: str, schema: str) -> Steps[None]:
    """Leave a task the index of its current limit, which another session may have set since, and drop its others.

    After each drop it checks again: the other session may have set a limit by the field whose index has just gone.
    """
    has_dropped = True
    while has_dropped:
        field = next((row[8] for row in (yield Call("limit_list")) if row[0] == task), None)
        if field is not None:
            yield from _build_index(task, field, schema)
        has_dropped = yield from _drop_indexes(task, schema, keep=field)


def _drop_indexes(task: str, schema: str, *, keep: str | None) -> Steps[bool]:
    """Drop the indexes of all fields but one, and return whether there were any.

    Those that only the owner of the queue may drop stay, as after a change in a transaction: the limit has changed.
    """
    task_id, found = yield from _indexes(task, schema)
    kept = None if keep is None else _index_name(task_id, keep)
    others = [name for name, _, may_drop in found if may_drop and name != kept]
    while others and (yield Call("limit_index_wait", {"schema": schema})):
        pass
    for name in others:
        yield Call("limit_index_drop", names={"INDEX": name})
    return bool(others)


def _indexes(task: str, schema: str) -> Steps[tuple[int, Rows]]:
    """Return the id of a task, and its indexes: the name of each, and whether it may be used and dropped.

    Those of tasks that another program has deleted are among them.
    """
    [task_id] = yield from registering_tasks([task])
    found = yield Call("limit_index_list", {"schema": schema, "task_id": task_id})
    return task_id, found


def _index_name(task_id: int, field: str) -> str:
    """Return the name that limit_lock.sql expects."""
    return f"jobs_gw_field_{task_id}_{md5(field.encode(), usedforsecurity=False).hexdigest()[:8]}"


def _limit_columns(limit: TaskLimit) -> dict[str, object]:
    """Return a limit as values of limit_set.sql."""
    is_rate = limit.per_period is not None
    return {
        "task": limit.task,
        "most_running": limit.running,
        "per_period": limit.per_period,
        "period_seconds": None if limit.period is None else limit.period.total_seconds(),
        "burst": limit.bucket_size if is_rate else None,
        "field": limit.field,
    }


def limit_of(row: Sequence[Any]) -> TaskLimit:
    """Return the limit of a row of limit_list.sql."""
    task, running, per_period, seconds, burst, by, at, locked, field, has_index, startable = row
    return TaskLimit(
        task=task,
        running=running,
        per_period=None if per_period is None else round(per_period),
        period=None if seconds is None else timedelta(seconds=seconds),
        burst=None if burst is None else max(1, round(burst)),
        set_by=by,
        set_at=timestamp(at),
        locked=locked,
        field=field,
        has_index=has_index,
        startable=startable,
    )
