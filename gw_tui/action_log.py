"""What was done from consoles on this machine: one line an act, in a file only its owner may read."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gw_tui.acts import (
    Act,
    Add,
    Clean,
    Fail,
    Forget,
    Remove,
    RemoveByKey,
    Reschedule,
    Restore,
    Result,
    Retry,
    Unlock,
    only_looks,
)

if TYPE_CHECKING:
    from gw_core import Job
    from gw_tui.source import Target

CHANGES: Final = ("run_at", "priority", "attempts", "max_attempts")


def usual_path() -> Path:
    """Return where the file usually is."""
    where = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(where, "gw", "actions.jsonl")


@dataclass(frozen=True, slots=True)
class ActionLog:
    """Writes acts down as they are done; for removals the jobs as they were, as `gw add --from` takes them."""

    path: Path

    def note(self, target: Target, act: Act, result: Result | None, failure: str = "") -> None:
        """Write down what became of an act. Raises `OSError`; an act that only looked is left out."""
        if only_looks(act):
            return
        record = {
            "at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "who": _who(),
            "target": target.where,
            "schema": target.schema,
            "act": type(act).__name__.lower(),
            **_asked(act),
            **({"failure": failure} if result is None else _became(act, result)),
        }
        self._append(msgspec.json.encode(record))

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        # In one go: two consoles may write at the same moment.
        with os.fdopen(file, "ab", buffering=0) as out:
            out.write(line + b"\n")


def _asked(act: Act) -> Mapping[str, Any]:
    match act:
        case Add():
            return {"job": _specified(act)}
        case Unlock():
            return {"workers": list(act.workers)}
        case Clean():
            return {"litter": act.litter.value}
        case Restore():
            return {"ids": [each.id for each in act.jobs]}
        case RemoveByKey():
            return {"key": act.key, "ids": [act.job.id]}
        case Forget():
            return {"item": act.identifier}
        case Reschedule():
            return {"ids": [each.id for each in act.jobs], **_given(act, CHANGES)}
        case Retry() | Fail() | Remove():
            return {"ids": [each.id for each in act.jobs], **_given(act, ("reason",))}
        case _:
            return {}


def _became(act: Act, result: Result) -> Mapping[str, Any]:
    record: dict[str, Any] = {"done": list(result.done)}
    if result.count is not None:
        record["count"] = result.count
    if result.omitted:
        record["left_alone"] = {each.what: each.why for each in result.omitted}
    if result.told:
        record["told"] = result.told
    if isinstance(act, Remove | RemoveByKey):
        record["removed"] = [{"id": job.id, "job": _whole(job)} for job in result.removed]
    return record


def _given(thing: object, names: Sequence[str]) -> Mapping[str, Any]:
    return {name: value for name in names if (value := getattr(thing, name, None)) is not None}


def _specified(act: Add) -> Mapping[str, Any]:
    names = ("task", "queue_name", "run_at", "priority", "max_attempts", "job_key")
    return {**_given(act.spec, names), **({} if act.payload is None else {"payload": _compact(act.payload)})}


def _whole(job: Job) -> Mapping[str, Any]:
    """Return a job as `gw add --from` takes it, with every attempt it had left."""
    left = job.max_attempts - job.attempts
    record = {
        "task": job.task_identifier,
        "payload": _compact(job.payload),
        "queue": job.queue_name,
        "run_at": job.run_at.isoformat(),
        "max_attempts": left if left > 0 else job.max_attempts,
        "key": job.key,
        "priority": job.priority,
        "flags": job.flag_names or None,
    }
    return {name: value for name, value in record.items() if value is not None}


def _compact(payload: str) -> msgspec.Raw:
    """Return a payload on one line, its numbers as they were written."""
    return msgspec.Raw(msgspec.json.format(payload.encode(), indent=-1))


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run as a number without a name
        return str(os.getuid())
