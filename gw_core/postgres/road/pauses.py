"""Pause and resume tasks, named queues, flags, recurring tasks or everything, and read what is paused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any, Final

import msgspec

from gw_core.domain.durations import check_from_now
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import timestamp
from gw_core.domain.rules.pause import (
    PAUSE_LOCK,
    TARGETS,
    Pause,
    PauseKind,
    PauseResult,
    PauseRules,
    PauseTarget,
    check_pause_text,
)
from gw_core.domain.rules.sweep_rules import RecoverySettings
from gw_core.postgres.connection.callers_connection import Rows
from gw_core.postgres.connection.database import Connection, in_its_settings
from gw_core.postgres.connection.deadlines import ANSWER_GRACE, ending_within
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.statement_steps import Operation, Steps, Unit, fetch_on, run_steps
from gw_core.postgres.connection.statements import query
from gw_core.postgres.road.action_records import check_by, recording
from gw_core.postgres.road.add_calls import Call
from gw_core.postgres.schema.schema_state import TABLES_STEP, checked

CONFIRM_TIMEOUT: Final = timedelta(seconds=2)
"""How long workers may take to confirm a change before they are named."""

WAIT: Final = Call("wait", {"seconds": 0.01})
"""Between two checks which workers have confirmed a change."""


_IS_OVER: Final = "the pause ends before it begins; give a future time"

NEW_REVISION: Final = Call("claim_rules_change")
"""Returns the new revision of the rules; the transaction keeps all others from changing them."""


class ClaimRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for claims as one snapshot; `has_expired`: a pause has ended and is still stored."""

    revision: int
    pauses: PauseRules
    has_expired: bool
    limited_tasks: frozenset[str]
    """Tasks that have a limit."""
    seconds_until_end: float | None = None
    """When the first pause ends, if any does."""


# -- changes, for threads and event loops ----------------------------------------------------------------------------


def changing(
    change: Call,
    timeout: timedelta,
    *,
    then: Callable[[], Steps[None]] | None = None,
    before: Callable[[], Steps[None]] | None = None,
    after: Callable[[], Steps[None]] | None = None,
    target_of: Callable[..., PauseTarget] | None = None,
    waits: bool = True,
    record: Callable[[Rows], Steps[None]] | None = None,
) -> Operation[PauseResult]:
    """Change the rules for claims, and wait until all live workers have confirmed it, or until the timeout.

    Without `waits`, no worker has to confirm it. `change` returns a row for each rule that it changes. `then` runs in
    the same transaction, `before` and `after` outside of one; `after` only if a rule has changed. `target_of` makes a
    target of each row, and `record` records them.
    """
    if before is not None:
        yield Unit(before)
    with ending_within(timeout + ANSWER_GRACE):
        revision, changed = yield Unit(partial(_change, change, then, record), is_atomic=True)
        missing = (yield from _unconfirmed(revision, timeout)) if waits else []
    if changed and after is not None:
        yield Unit(after)
    return PauseResult(
        changed=len(changed),
        unconfirmed=tuple(name for (name,) in missing),
        targets=() if target_of is None else tuple(target_of(*row) for row in changed),
    )


def _unconfirmed(revision: int, timeout: timedelta) -> Operation[Rows]:
    """Wait until all live workers have confirmed a revision, or until the timeout; return those that have not."""
    recent = RecoverySettings().sweep_threshold
    unconfirmed = Call("claim_rules_unconfirmed", {"revision": revision, "recent_seconds": recent.total_seconds()})
    deadline = monotonic() + timeout.total_seconds()
    missing: Rows = yield unconfirmed
    while missing and monotonic() < deadline:
        yield WAIT
        missing = yield unconfirmed
    return missing


def _change(
    change: Call, then: Callable[[], Steps[None]] | None, record: Callable[[Rows], Steps[None]] | None
) -> Steps[tuple[int, Rows]]:
    """Return the new revision, and a row for each rule that changed."""
    [(revision, *_)] = yield NEW_REVISION
    changed = yield change
    if then is not None:
        yield from then()
    if record is not None:
        yield from record(changed)
    return revision, changed


def usable(schema: str, timeout: timedelta) -> Steps[None]:
    """Raise the error that explains what to do, unless this version can use the schema as it is."""
    with ending_within(timeout + ANSWER_GRACE):
        (yield from checked(schema)).raise_unless_usable()


def listing(schema: str) -> Operation[Sequence[Pause]]:
    """Return what is paused, the oldest pause first; nothing in a schema without gw's tables."""
    state = yield from checked(schema)
    return [pause_of(*row) for row in (yield Call("pause_list"))] if TABLES_STEP in state.own_present else []


def pausing(
    targets: Sequence[str | PauseTarget],
    schema: str,
    timeout: timedelta,
    *,
    until: datetime | timedelta | None,
    reason: str | None,
    by: str | None,
) -> Operation[PauseResult]:
    """Pause these targets. Raises `InvalidInputError`."""
    checked = _checked_targets(targets)
    check_pause_text("reason", reason)
    check_by(by)
    values = {**_target_columns(checked), **_end_columns(until), "reason": reason, "by": by}
    yield from usable(schema, timeout)
    change = Call("pause_set", values)
    lock = partial(_lock_queues, schema)
    record = partial(_record_pause, by, schema, reason=reason, until=until)
    waits = _bind_claims(checked)
    return (yield from changing(change, timeout, then=lock, target_of=_target, waits=waits, record=record))


def resuming(
    targets: Sequence[str | PauseTarget], schema: str, timeout: timedelta, *, by: str | None
) -> Operation[PauseResult]:
    """Resume these targets. Raises `InvalidInputError`.

    Without a check of the schema, which is most of the time until the jobs start: without gw's tables, the first
    statement fails.
    """
    checked = _checked_targets(targets)
    check_by(by)
    # Also without a row: a queue's lock may be left over from a pause that is gone.
    names = [each.name for each in checked if each.kind is PauseKind.QUEUE]
    change = Call("pause_delete", _target_columns(checked))
    release = partial(_release_queues, names, schema)
    record = partial(_record, "resume", by, schema)
    waits = _bind_claims(checked)
    return (yield from changing(change, timeout, then=release, target_of=_target, waits=waits, record=record))


def _record_pause(by: str | None, schema: str, changed: Rows, **details: Any) -> Steps[None]:
    if not changed:
        raise InvalidInputError(_IS_OVER)
    yield from _record("pause", by, schema, changed, **details)


def _record(action: str, by: str | None, schema: str, changed: Rows, **details: Any) -> Steps[None]:
    yield from recording(action, by, schema, targets=[str(_target(*row)) for row in changed], **details)


def _bind_claims(targets: Sequence[PauseTarget]) -> bool:
    """Return whether workers have to confirm pauses of these; the statement that adds cron jobs reads theirs itself."""
    return any(each.kind is not PauseKind.CRON for each in targets)


def _lock_queues(schema: str) -> Steps[None]:
    """Lock the paused queues, or renew their locks."""
    locked = yield Call("pause_lock_queues", {"prefix": PAUSE_LOCK, "schema": schema})
    for name, has_rust_workers in locked:
        if has_rust_workers:
            yield Call("rust_heartbeat", {"worker_id": PAUSE_LOCK + name, "metadata": "{}"})


def _release_queues(names: Sequence[str], schema: str) -> Steps[None]:
    if not names:
        return
    yield Call("pause_release_queues", {"names": names, "prefix": PAUSE_LOCK})
    [(_, has_rust_workers, _)] = yield Call("sweep_preconditions", {"schema": schema})
    for name in names if has_rust_workers else ():
        yield Call("delete_rust_heartbeat", {"worker_id": PAUSE_LOCK + name})


def _target(kind: str, name: str) -> PauseTarget:
    return PauseTarget(PauseKind(kind), name)


def pause_of(kind: str, name: str, since: float, until: float | None, by: str, reason: str | None) -> Pause:
    """Return the pause of a row of pause_list.sql."""
    return Pause(
        target=_target(kind, name),
        since=timestamp(since),
        until=None if until is None else timestamp(until),
        by=by,
        reason=reason,
    )


# -- for workers -----------------------------------------------------------------------------------------------------


def read_claim_rules(connection: Connection, schema: str) -> ClaimRules:
    """Return the current rules for claims."""
    found = _rows(connection, schema, "claim_rules_read", {})
    targets = [PauseTarget(PauseKind(kind), name) for *_, kind, name, _ in found if kind is not None]
    ends = [seconds for *_, seconds in found if seconds is not None]
    return ClaimRules(
        revision=found[0][0],
        has_expired=found[0][1],
        limited_tasks=frozenset(found[0][2]),
        pauses=PauseRules.of(targets),
        seconds_until_end=min(ends, default=None),
    )


def confirm_claim_rules(connection: Connection, schema: str, *, worker_id: str, revision: int) -> None:
    """Record that a worker applies this revision of the rules."""
    _rows(connection, schema, "claim_rules_confirm", {"worker_id": worker_id, "revision": revision})


def end_expired_pauses(connection: Connection, schema: str) -> None:
    """Delete pauses that have ended, release their queues and notify all workers."""
    with translated(schema), connection.transaction():
        fetch = fetch_on(connection, schema)
        if deleted := fetch(Call("pause_delete_expired")):
            run_steps(_release_queues([name for kind, name in deleted if kind == PauseKind.QUEUE], schema), fetch)
            fetch(NEW_REVISION)


def lock_paused_queues(connection: Connection, schema: str) -> None:
    """Lock the paused queues, or renew their locks."""
    run_steps(_lock_queues(schema), lambda call: _rows(connection, schema, call.statement, call.values))


def _rows(connection: Connection, schema: str, name: str, values: Mapping[str, Any]) -> Rows:
    with translated(schema), connection.cursor(binary=True) as cursor:
        with in_its_settings(connection):
            cursor.execute(query(name, schema), values, prepare=False)
        return cursor.fetchall()


def _checked_targets(targets: Sequence[str | PauseTarget]) -> Sequence[PauseTarget]:
    """Return the targets, each once. Raises `InvalidInputError`."""
    if not targets:
        raise InvalidInputError(f"name what to pause or resume: {TARGETS}")
    return list(dict.fromkeys(PauseTarget.parse(each) if isinstance(each, str) else each for each in targets))


def _target_columns(targets: Sequence[PauseTarget]) -> dict[str, Any]:
    """Return targets as columns of a statement."""
    return {"kinds": [str(each.kind) for each in targets], "names": [each.name for each in targets]}


def _end_columns(until: datetime | timedelta | None) -> dict[str, Any]:
    """Return the end as a time, or as seconds by the database's clock. Raises `InvalidInputError`."""
    if isinstance(until, timedelta):
        if until <= timedelta(0):
            raise InvalidInputError(_IS_OVER)
        return {"until": None, "seconds": check_from_now("the end of the pause", until).total_seconds()}
    if until is not None and not isinstance(until, datetime):
        raise InvalidInputError(f"until must be an aware datetime or a timedelta, not {type(until).__name__}")
    if until is not None and until.tzinfo is None:
        raise InvalidInputError("until has no time zone; give an aware datetime")
    return {"until": until, "seconds": None}
