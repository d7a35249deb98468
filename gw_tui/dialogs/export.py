"""Jobs written to a file, one a line, for other programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gw_core.front_ends import END_OF_TIME
from gw_core.runtime.files import new_file
from gw_tui.dialogs.choose import Choice
from gw_tui.text.redact import masked

if TYPE_CHECKING:
    from gw_core.front_ends import FoundJob

KINDS: Final = (
    Choice("jsonl", "JSON", "one object per line"),
    Choice("csv", "CSV", "for spreadsheets, with a header"),
)
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
NAMES: Final = (
    *("id", "state", "task", "queue_name", "priority", "run_at", "attempts", "max_attempts", "job_key", "flags"),
    *("last_error", "locked_at", "started_at", "locked_by", "created_at"),
)


def write(path: Path, jobs: Sequence[FoundJob], *, unmask: bool) -> None:
    """Write a new file that only its owner may read, in the format of its suffix. Raises `OSError`."""
    with TextIOWrapper(new_file(path), encoding="utf-8", newline="") as out:
        records = (record_of(each, unmask=unmask) for each in jobs)
        if path.suffix == ".csv":
            table = csv.DictWriter(out, NAMES)
            table.writeheader()
            table.writerows({name: _cell(value) for name, value in each.items()} for each in records)
        else:
            out.writelines(f"{json.dumps(each, default=datetime.isoformat)}\n" for each in records)


def record_of(found: FoundJob, *, unmask: bool) -> Mapping[str, Any]:
    """Return a job in the words of `gw list --json`."""
    job = found.job
    values = {name: getattr(job, name, None) for name in NAMES}
    error = job.last_error or None
    if job.run_at == END_OF_TIME:
        values["run_at"] = None
    return {**values, "state": found.state.value, "last_error": error if unmask or not error else masked(error)}


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        value = ",".join(value)
    # A spreadsheet would run a text that looks like a formula; any role that adds jobs may have written it.
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
