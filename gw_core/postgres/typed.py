"""What a person could type instead of an act of ours: the `gw` command, and the SQL for psql."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gw_core.postgres.database import DEFAULT_SCHEMA
from gw_core.postgres.statements import quoted


@dataclass(frozen=True, slots=True)
class Typed:
    """An act as it would be typed; as text both, one below the other."""

    command: str
    sql: str

    def __str__(self) -> str:
        return f"{self.command}\n{self.sql}\n"


@dataclass(frozen=True, slots=True)
class AsTyped:
    """Writes acts down for one schema. The SQL is for a person to read and run: we never run it."""

    schema: str = DEFAULT_SCHEMA

    def show(self, job_id: int) -> Typed:
        """Show everything about one job."""
        sql = f"select * from {quoted(self.schema)}._private_jobs where id = {job_id};"  # noqa: S608 - see above
        return Typed(self._gw("show", str(job_id)), sql)

    def retry(self, ids: Sequence[int]) -> Typed:
        """Let jobs run again now, with all their attempts."""
        values = f"{_ids(ids)}, run_at => now(), attempts => 0"
        return Typed(self._gw("retry", *map(str, ids)), self._call("reschedule_jobs", values))

    def reschedule(self, ids: Sequence[int]) -> Typed:
        """Let jobs run in an hour; the moment is there to be changed."""
        values = f"{_ids(ids)}, run_at => now() + interval '1 hour'"
        return Typed(self._gw("reschedule", *map(str, ids), "--run-at", "+1h"), self._call("reschedule_jobs", values))

    def fail(self, ids: Sequence[int], reason: str = "failed by hand") -> Typed:
        """Fail jobs for good."""
        command = self._gw("fail", *map(str, ids), "--reason", reason)
        return Typed(command, self._call("permanently_fail_jobs", f"{_ids(ids)}, {_text(reason)}"))

    def remove(self, ids: Sequence[int]) -> Typed:
        """Remove jobs as if they had been completed."""
        return Typed(self._gw("complete", *map(str, ids)), self._call("complete_jobs", _ids(ids)))

    def unlock(self, workers: Sequence[str]) -> Typed:
        """Take every lock from dead workers."""
        values = f"array[{', '.join(map(_text, workers))}]"
        return Typed(self._gw("unlock", *workers), self._call("force_unlock_workers", values))

    def _gw(self, verb: str, *arguments: str) -> str:
        where = [] if self.schema == DEFAULT_SCHEMA else ["--schema", self.schema]
        return shlex.join(["gw", verb, *where, *_unmistaken(arguments)])

    def _call(self, function: str, values: str) -> str:
        return f"select * from {quoted(self.schema)}.{function}({values});"  # noqa: S608 - see above


def _unmistaken(arguments: Sequence[str]) -> Sequence[str]:
    """Return arguments so that a worker called `-x` is not taken for an option."""
    return ["--", *arguments] if arguments and arguments[0].startswith("-") else arguments


def _ids(ids: Iterable[int]) -> str:
    return f"array[{', '.join(map(str, ids))}]::bigint[]"


def _text(text: str) -> str:
    """Return a literal; one with a backslash says so, for the server's settings may differ."""
    literal = "'" + text.replace("'", "''") + "'"
    return "E" + literal.replace("\\", "\\\\") if "\\" in literal else literal
