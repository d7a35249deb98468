"""Jobs written to a file, one a line, for other programs."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from gw_tui.dialogs.choose import Choice
from gw_tui.text.redact import masked

if TYPE_CHECKING:
    from gw_core import Job
    from gw_core.operations import FoundJob

KINDS: Final = (
    Choice("jsonl", "JSON", "one object per line"),
    Choice("csv", "CSV", "for spreadsheets, with a header"),
)
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
FIELDS: Final[Mapping[str, Callable[[Job], object]]] = {
    "task": lambda job: job.task_identifier,
    "queue": lambda job: job.queue_name,
    "priority": lambda job: job.priority,
    "run_at": lambda job: job.run_at.isoformat(),
    "attempts": lambda job: job.attempts,
    "max_attempts": lambda job: job.max_attempts,
    "key": lambda job: job.key,
    "flags": lambda job: list(job.flag_names),
    "last_error": lambda job: job.last_error or None,
    "locked_at": lambda job: None if job.locked_at is None else job.locked_at.isoformat(),
    "started_at": lambda job: None if job.started_at is None else job.started_at.isoformat(),
    "locked_by": lambda job: job.locked_by,
    "created_at": lambda job: job.created_at.isoformat(),
}
NAMES: Final = ("id", "state", *FIELDS)


def write(path: Path, jobs: Sequence[FoundJob], *, unmask: bool) -> None:
    """Write a new file that only its owner may read, in the format of its suffix. Raises `OSError`."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8", newline="") as out:
        records = (record_of(each, unmask=unmask) for each in jobs)
        if path.suffix == ".csv":
            table = csv.DictWriter(out, NAMES)
            table.writeheader()
            table.writerows({name: _cell(value) for name, value in each.items()} for each in records)
        else:
            out.writelines(f"{json.dumps(each)}\n" for each in records)


def record_of(found: FoundJob, *, unmask: bool) -> Mapping[str, Any]:
    """Return a job in the words of `gw list --json`."""
    job = found.job
    if not unmask and job.last_error:
        job = replace(job, last_error=masked(job.last_error))
    return {"id": job.id, "state": found.state.value, **{name: read(job) for name, read in FIELDS.items()}}


def _cell(value: object) -> object:
    if isinstance(value, list):
        value = ",".join(value)
    # A spreadsheet would run a text that looks like a formula; any role that adds jobs may have written it.
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
