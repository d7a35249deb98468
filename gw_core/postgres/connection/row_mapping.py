"""Convert rows of the database to values of the domain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from gw_core.domain.job.job import timestamp
from gw_core.domain.rules.sweep_rules import WorkerInfo

RUST_WORKERS: Final = {"WORKERS": "_private_workers", "DETAILS": "null::text, null::integer, null::text"}
"""The variables of heartbeat_list.sql for the table of graphile_worker_rs."""


def optional_timestamp(epoch: float | None) -> datetime | None:
    """Return seconds since 1970 as a UTC time, and null as None."""
    return None if epoch is None else timestamp(epoch)


def heartbeat(row: Sequence[Any]) -> WorkerInfo:
    """Return the worker that sent a heartbeat, from a row of heartbeat_list.sql."""
    worker_id, started, last, age, host, pid, version, metadata = row
    about = _decoded(metadata) if metadata else None
    return WorkerInfo(
        id=worker_id,
        started_at=timestamp(started),
        last_heartbeat_at=timestamp(last),
        heartbeat_age=timedelta(seconds=age),
        host=host,
        pid=pid,
        version=version,
        metadata=about if isinstance(about, dict) else {},
    )


def _decoded(metadata: str) -> object:
    """Return a worker's metadata; None if it is nested too deeply to be decoded."""
    try:
        return msgspec.json.decode(metadata)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
