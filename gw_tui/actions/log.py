"""What was done from consoles on this machine: one line an action, in a file only its owner may read."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never

import msgspec

from gw_core.front_ends import operator_name
from gw_core.runtime.files import append_to
from gw_tui.actions.action import Action, Result
from gw_tui.actions.jobs import Add, Complete, RemoveByKey
from gw_tui.actions.maintenance import CleanupSelected
from gw_tui.text.json_view import json_view
from gw_tui.text.redact import masked

if TYPE_CHECKING:
    from gw_core import Job
    from gw_tui.rules.options import Options, QueueInfo

MAX_BYTES: Final = 10 * 1024 * 1024
"""Size from which a file is put aside; there is one that is written and one that was."""

KEPT: Final = timedelta(days=30)
"""Age of its first line at which a file is put aside, and at which one that was put aside is deleted."""


class Payloads(StrEnum):
    """How the log stores the payloads of jobs that were added or removed."""

    WHOLE = "whole"
    MASKED = "masked"
    """With what looks like a secret hidden, as on the screen."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ActionLog:
    """Writes actions down as they are done; for removals the jobs as they were, as `gw add --from` takes them.

    A file that is large or old is put aside, in place of the one put aside before it.
    """

    path: Path
    payloads: Payloads = Payloads.WHOLE

    @property
    def aside(self) -> Path:
        """Where the file before this one is."""
        return self.path.with_name(f"{self.path.stem}.1{self.path.suffix}")

    def delete_old(self) -> None:
        """Delete files that contain only expired entries. Raises `OSError`."""
        for path in (self.aside, self.path):
            if path.exists() and time.time() - path.stat().st_mtime > KEPT.total_seconds():
                path.unlink(missing_ok=True)

    def note(self, target: QueueInfo, action: Action, result: Result, failure: str = "") -> None:
        """Record a result of an action, or its failure, unless it only reads. Raises `OSError`."""
        if action.reads_only:
            return
        record = {
            "at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "user": operator_name(),
            "target": target.where,
            "schema": target.schema,
            "action": type(action).__name__.lower(),
            **({"ids": list(ids)} if (ids := result.ids or action.ids) else {}),
            **self._asked(action),
            **({"failure": failure} if failure else self._became(action, result)),
        }
        self.delete_old()
        self._append(msgspec.json.encode(record))

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            with append_to(self.path) as out:
                file = out.fileno()
                # Two consoles may write at the same time, and only one may rotate the file.
                fcntl.flock(file, fcntl.LOCK_EX)
                if not self._is_current(file):
                    continue
                if self._is_done(file, len(line)):
                    self.path.replace(self.aside)
                    continue
                out.write(line + b"\n")
                return

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self.path.stat())
        except FileNotFoundError:
            return False

    def _is_done(self, file: int, more: int) -> bool:
        """Return whether a file has become too large for another line, or too old."""
        size = os.fstat(file).st_size
        if not size:
            return False
        return size + more > MAX_BYTES or datetime.now(UTC) - _first_timestamp(file) > KEPT

    def _asked(self, action: Action) -> Mapping[str, Any]:
        if isinstance(action, Add):
            return {"job": {**action.entry(), **({} if action.payload is None else self._payload(action.payload))}}
        return action.entry()

    def _became(self, action: Action, result: Result) -> Mapping[str, Any]:
        record: dict[str, Any] = {"completed": list(result.done)}
        if result.count is not None:
            record["count"] = result.count
        if result.skipped:
            record["skipped"] = {each.what: each.why for each in result.skipped}
        if result.message:
            record["message"] = result.message
        if isinstance(action, Complete | CleanupSelected | RemoveByKey):
            # A job that lacks its payload must not be added again by accident, so it has another name.
            record["deleted"] = [{"id": job.id, self._name_of(job): self._whole(job)} for job in result.removed]
        return record

    def _name_of(self, job: Job) -> str:
        """Return the key of a removed job: `job` only if adding it again restores it."""
        name = {Payloads.WHOLE: "job", Payloads.MASKED: "masked_job", Payloads.NONE: "job_without_payload"}
        # A permanently failed job would run again.
        is_failed = job.attempts >= job.max_attempts
        return f"failed_{name[self.payloads]}" if is_failed else name[self.payloads]

    def _payload(self, payload: str) -> Mapping[str, Any]:
        match self.payloads:
            case Payloads.WHOLE:
                return {"payload": _compact(payload)}
            case Payloads.MASKED:
                return {"payload": _masked(payload)}
            case Payloads.NONE:
                return {}
            case _:
                assert_never(self.payloads)

    def _error(self, job: Job) -> str | None:
        """Return the last error, with its secrets hidden unless payloads are written whole."""
        error = job.last_error
        return error if error is None or self.payloads is Payloads.WHOLE else masked(error)

    def _whole(self, job: Job) -> Mapping[str, Any]:
        """Return a job as `gw add --from` takes it, with every attempt it had left."""
        left = job.max_attempts - job.attempts
        failure = {} if left > 0 else {"attempts": job.attempts, "last_error": self._error(job)}
        expires_at = None if job.attempts or job.last_error else job.expires_at  # counts until the first start
        record = {
            "task": job.task,
            **self._payload(job.payload_json),
            "queue_name": job.queue_name,
            "run_at": job.run_at.isoformat(),
            "max_attempts": left if left > 0 else job.max_attempts,
            "job_key": job.job_key,
            "priority": job.priority,
            "flags": job.flags or None,
            "expires_at": expires_at and expires_at.isoformat(),
            **failure,
        }
        return {name: value for name, value in record.items() if value is not None}


def _compact(payload: str) -> msgspec.Raw:
    """Return a payload on one line, its numbers as they were written."""
    return msgspec.Raw(msgspec.json.format(payload.encode(), indent=-1))


def _masked(payload: str) -> msgspec.Raw:
    """Return a payload with its secrets hidden, as JSON; as a text where it is too long to be shown as a value."""
    shown = str(json_view(payload, whole=True))
    try:
        return _compact(shown)
    except msgspec.DecodeError:
        return msgspec.Raw(msgspec.json.encode(shown))


def _first_timestamp(file: int) -> datetime:
    """Return when a file's first line was written, or when its last one was where that cannot be read."""
    try:
        # The timestamp is the first member of every line.
        return datetime.fromisoformat(os.pread(file, 64, 0).split(b'"')[3].decode()).astimezone(UTC)
    except (IndexError, ValueError):
        return datetime.fromtimestamp(os.fstat(file).st_mtime, UTC)


def action_log(options: Options) -> ActionLog | None:
    """Return the action log that the options ask for, without expired entries; None when they ask for none."""
    if options.action_log is None:
        return None
    log = ActionLog(options.action_log, Payloads(options.log_payloads))
    with suppress(OSError):  # reported at the next write
        log.delete_old()
    return log
