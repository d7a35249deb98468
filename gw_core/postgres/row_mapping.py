"""What the server answers in numbers and text, as values of the domain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from gw_core.domain.recovery import WorkerInfo


def moment(epoch: float) -> datetime:
    """Return the moment so many seconds after 1970; one that Python cannot write becomes its first or last."""
    try:
        return datetime.fromtimestamp(epoch, UTC)
    except (OverflowError, ValueError):
        return (datetime.max if epoch > 0 else datetime.min).replace(tzinfo=UTC)


def heart(
    worker_id: str,
    started: float,
    last: float,
    age: float,
    host: str | None,
    pid: int | None,
    version: str | None,
    metadata: str | None,
) -> WorkerInfo:
    """Return a worker by its heartbeat."""
    about = _decoded(metadata) if metadata else None
    return WorkerInfo(
        id=worker_id,
        started_at=moment(started),
        last_heartbeat_at=moment(last),
        heartbeat_age=timedelta(seconds=age),
        host=host,
        pid=pid,
        version=version,
        metadata=about if isinstance(about, dict) else {},
    )


def _decoded(metadata: str) -> object:
    """Return what a worker says of itself; nothing, when it is nested too deeply to be read."""
    try:
        return msgspec.json.decode(metadata)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
