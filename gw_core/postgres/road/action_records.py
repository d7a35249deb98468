"""Record what operators do, in the transaction in which they do it, and list it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import timestamp
from gw_core.domain.job.recorded_action import RecordedAction
from gw_core.domain.rules.pause import check_pause_text
from gw_core.postgres.connection.statement_steps import Operation, Steps
from gw_core.postgres.road.add_calls import Call

MAX_PAGE = 10_000


def recording(
    action: str,
    by: str | None,
    schema: str,
    *,
    job_ids: Iterable[int] = (),
    targets: Iterable[str] = (),
    **details: Any,
) -> Steps[None]:
    """Record an action, unless it changed nothing or names no operator; details that are None are left out.

    A schema that another worker installed has no place for it.
    """
    ids, changed = sorted(job_ids), sorted(set(targets))
    if by is None or not (ids or changed):
        return
    [[is_kept]] = yield Call("has_table", {"schema": schema, "table": "_private_gw_actions"})
    if not is_kept:
        return
    given = {name: value for name, value in details.items() if value is not None}
    text = json.dumps(given, default=str) if given else None
    yield Call("record_action", {"action": action, "by": by, "job_ids": ids, "targets": changed, "details": text})


def check_by(by: str | None) -> None:
    """Raise `InvalidInputError` for a name that cannot be recorded."""
    check_pause_text("by", by)


def listing_actions(job_id: int | None, *, after: int | None, limit: int) -> Operation[Sequence[RecordedAction]]:
    """Return what operators did, the latest first."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInputError(f"a page has from 1 to {MAX_PAGE:,} actions, not {limit}")
    return [_recorded(*row) for row in (yield Call("list_actions", {"job_id": job_id, "after": after, "limit": limit}))]


def _recorded(
    number: int,
    at: float,
    action: str,
    by: str,
    role: str,
    program: str | None,
    address: str | None,
    job_ids: Sequence[int],
    targets: Sequence[str],
    details: str | None,
) -> RecordedAction:
    return RecordedAction(
        id=number,
        at=timestamp(at),
        action=action,
        by=by,
        role=role,
        program=program,
        address=address,
        job_ids=tuple(job_ids),
        targets=tuple(targets),
        details=json.loads(details) if details else {},
    )
