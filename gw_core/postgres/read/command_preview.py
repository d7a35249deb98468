"""The equivalent command of an action: `gw` for a shell, and the SQL for psql."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gw_core.domain.job.job import JobSpec, encode_payload
from gw_core.domain.rules.sweep_rules import RECOVERED_MESSAGE, RecoverySettings
from gw_core.domain.safe_text import UNSAFE_TEXT, shell_command, sql_literal as _text
from gw_core.postgres.connection.database import DEFAULT_SCHEMA
from gw_core.postgres.connection.statements import quoted


@dataclass(frozen=True, slots=True)
class CommandText:
    """The equivalent of an action: as a command, or as SQL.

    Each is one line that does the same when it is pasted into a shell or into psql; never paste both into one.
    """

    command: str | None
    """None when a value has control or invisible characters, which no shell takes as they are."""
    sql: str | None
    """None where only gw does it, because workers take part."""


@dataclass(frozen=True, slots=True)
class CommandPreview:
    """Writes acts down for one schema. The SQL is for a person to read and run: we never run it."""

    schema: str = DEFAULT_SCHEMA

    def retry(self, ids: Sequence[int]) -> CommandText:
        """Retry failed jobs now; permanently failed ones get all their attempts again."""
        schema = quoted(self.schema)
        sql = (
            f"select again.* from {schema}._private_jobs as job cross join lateral {schema}.reschedule_jobs("  # noqa: S608 - see above
            "array[job.id], run_at => now(), attempts => case when job.attempts >= job.max_attempts then 0 end"
            ") as again "
            f"where job.id = any({_ids(ids)}) and job.locked_at is null "
            "and (job.attempts >= job.max_attempts or job.last_error is not null);"
        )
        return CommandText(self._gw("retry", *map(str, ids)), sql)

    def reschedule(
        self,
        ids: Sequence[int],
        *,
        run_at: datetime | None = None,
        priority: int | None = None,
        attempts: int | None = None,
        max_attempts: int | None = None,
    ) -> CommandText:
        """Change when and how jobs run. Without a change, the preview sets `run_at` to in an hour."""
        given = {"priority": priority, "attempts": attempts, "max_attempts": max_attempts}
        numbers = {name: str(value) for name, value in given.items() if value is not None}
        at: tuple[str, str] | None = None
        if run_at is not None:
            at = run_at.isoformat(), _timestamp_sql(run_at)
        elif not numbers:
            at = "+1h", "now() + interval '1 hour'"
        words = {**({} if at is None else {"run-at": at[0]}), **numbers}
        values = {**({} if at is None else {"run_at": at[1]}), **numbers}
        named = "".join(f", {name} => {value}" for name, value in values.items())
        command = self._gw("reschedule", *map(str, ids), *_options(words))
        return CommandText(command, self._call("reschedule_jobs", f"{_ids(ids)}{named}"))

    def fail(self, ids: Sequence[int], reason: str | None = "failed manually") -> CommandText:
        """Fail jobs permanently."""
        command = self._gw("fail", *map(str, ids), *_options({} if reason is None else {"reason": reason}))
        values = _ids(ids) if reason is None else f"{_ids(ids)}, {_text(reason)}"
        return CommandText(command, self._call("permanently_fail_jobs", values))

    def remove(self, ids: Sequence[int]) -> CommandText:
        """Remove jobs as if they had been completed."""
        return CommandText(self._gw("complete", *map(str, ids)), self._call("complete_jobs", _ids(ids)))

    def remove_by_key(self, key: str) -> CommandText:
        """Remove the job with a key, or keep it from running again when it runs."""
        return CommandText(self._gw("remove", *_unmistaken((key,))), self._call("remove_job", _text(key)))

    def add(self, spec: JobSpec, payload: str | None = None) -> CommandText:
        """Add a job; `payload` is its payload as JSON text, or None for the one of `spec`."""
        payload = _on_one_line(encode_payload(spec.payload) if payload is None else payload)
        at = spec.run_at
        words = {
            "payload": payload,
            "queue": spec.queue_name,
            "run-at": at.isoformat() if isinstance(at, datetime) else None,
            "max-attempts": _number(spec.max_attempts),
            "job-key": spec.job_key,
            "job-key-mode": None if spec.job_key is None else spec.job_key_mode.value,
            "priority": _number(spec.priority),
        }
        values = {
            "payload": f"{_text(payload)}::json",
            "queue_name": _text_or_none(spec.queue_name),
            "run_at": _timestamp_sql(at) if isinstance(at, datetime) else None,
            "max_attempts": _number(spec.max_attempts),
            "job_key": _text_or_none(spec.job_key),
            "priority": _number(spec.priority),
            "flags": f"array[{', '.join(map(_text, spec.flags))}]" if spec.flags else None,
            "job_key_mode": None if spec.job_key is None else _text(spec.job_key_mode.value),
        }
        flags = [word for flag in spec.flags for word in _options({"flag": flag})]
        named = "".join(f", {name} => {value}" for name, value in values.items() if value is not None)
        command = self._gw("add", *_unmistaken((spec.task,), *_options(_without_none(words)), *flags))
        return CommandText(command, self._call("add_job", f"{_text(spec.task)}{named}"))

    def forget(self, identifier: str) -> CommandText:
        """Forget a recurring task."""
        table = f"{quoted(self.schema)}._private_known_crontabs"
        sql = f"delete from {table} where identifier = {_text(identifier)} returning *;"  # noqa: S608 - see above
        return CommandText(self._gw("cron", "forget", *_unmistaken((identifier,))), sql)

    def sweep(self, workers: Sequence[str], *, recovery: RecoverySettings, forgets: bool = True) -> CommandText:
        """Return the jobs of dead workers, their attempts not counted; `forgets` deletes their heartbeats too."""
        schema, delay = quoted(self.schema), recovery.effective_recovery_delay.total_seconds()
        dead = f"any(array[{', '.join(map(_text, workers))}]::text[])"
        message = _text(RECOVERED_MESSAGE)
        # A worker may have come back since it was displayed; its jobs must stay locked.
        is_back = f"workers.last_heartbeat_at > now() - interval '{recovery.sweep_threshold.total_seconds()} seconds'"
        heartbeat = f"select from {schema}._private_gw_workers as workers where workers.id = locked_by and {is_back}"
        held = f"locked_by = {dead}" + (f" and not exists ({heartbeat})" if forgets else "")
        # The text about retired jobs is that of sweep_recover_jobs.sql, which explains it.
        jobs = (
            f"update {schema}._private_jobs set "  # noqa: S608 - see above
            "attempts = case when key is null and attempts >= max_attempts and updated_at <> created_at "
            "then attempts else greatest(0, attempts - 1) end, "
            f"run_at = greatest(run_at, now() + interval '{delay} seconds'), "
            f"last_error = {message}, locked_at = null, locked_by = null where {held};"
        )
        queues = f"update {schema}._private_job_queues set locked_at = null, locked_by = null where {held};"  # noqa: S608 - see above
        heartbeats = f"delete from {schema}._private_gw_workers as workers where id = {dead} and not {is_back};"  # noqa: S608 - see above
        return CommandText(self._gw("sweep"), _in_one_transaction(jobs, queues, *([heartbeats] if forgets else [])))

    def clean(self, target: str, *, has_heartbeats: bool = True) -> CommandText:
        """Delete what is no longer needed; `has_heartbeats` is true where gw's tables are installed."""
        schema = quoted(self.schema)
        if target == "failed-jobs":
            sql = f"delete from {schema}._private_jobs where locked_at is null and attempts >= max_attempts;"  # noqa: S608 - see above
            return CommandText(self._gw("cleanup", target), sql)
        table, column = ("tasks", "task_id") if target == "unused-tasks" else ("job_queues", "job_queue_id")
        unused = f"not exists (select from {schema}._private_jobs as jobs where jobs.{column} = unused.id)"
        if table == "job_queues":
            unused += " and unused.locked_at is null"
        elif has_heartbeats:
            unused += (
                f" and not exists (select from {schema}._private_gw_workers as workers "  # noqa: S608 - see above
                "where workers.last_heartbeat_at > now() - interval '10 minutes' "
                "and workers.metadata -> 'tasks' ? unused.identifier)"
                # The index of a limit by field belongs to the id of its task.
                f" and not exists (select from {schema}._private_gw_limits as limits "
                "where limits.task = unused.identifier and limits.field is not null)"
            )
        # No job of a deleted row may be added: adding reads the id first, and uses it later.
        lock = f"lock table {schema}._private_{table} in share row exclusive mode;"
        delete = f"delete from {schema}._private_{table} as unused where {unused};"  # noqa: S608 - see above
        return CommandText(self._gw("cleanup", target), _in_one_transaction(lock, delete))

    def unlock(self, workers: Sequence[str]) -> CommandText:
        """Take every lock from dead workers."""
        values = f"array[{', '.join(map(_text, workers))}]"
        return CommandText(self._gw("unlock", *_unmistaken(workers)), self._call("force_unlock_workers", values))

    def cancel(self, ids: Sequence[int]) -> CommandText:
        """Cancel running jobs."""
        return CommandText(self._gw("cancel", *map(str, ids)), None)

    def pause(self, target: str, reason: str | None) -> CommandText:
        """Pause a task or a queue."""
        options = _options(_without_none({"reason": reason}))
        return CommandText(self._gw("pause", *options, target), None)

    def resume(self, target: str) -> CommandText:
        """Resume a task or a queue."""
        return CommandText(self._gw("resume", target), None)

    def _gw(self, *words: str) -> str | None:
        """Return a command; options may stand before its verb's arguments only, for `--` may follow."""
        verb = 2 if words[0] == "cron" else 1
        where = [] if self.schema == DEFAULT_SCHEMA else [f"--schema={self.schema}"]
        return shell_command(["gw", *words[:verb], *where, *words[verb:]])

    def _call(self, function: str, values: str) -> str:
        return f"select * from {quoted(self.schema)}.{function}({values});"  # noqa: S608 - see above


def _in_one_transaction(*statements: str) -> str:
    return " ".join(("begin;", *statements, "commit;"))


def _options(given: Mapping[str, str]) -> list[str]:
    """Return options with their values in one word each: a value that begins with a dash is none of them."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]


def _without_none(given: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value is not None}


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _timestamp_sql(at: datetime) -> str:
    return f"{_text(at.isoformat())}::timestamptz"


def _text_or_none(text: str | None) -> str | None:
    return None if text is None else _text(text)


def _unmistaken(names: Sequence[str], *options: str) -> Sequence[str]:
    """Return options and names so that a worker called `-x` is not taken for an option."""
    return [*options, "--", *names] if any(name.startswith("-") for name in names) else [*names, *options]


def _ids(ids: Iterable[int]) -> str:
    return f"array[{', '.join(map(str, ids))}]::bigint[]"


def _on_one_line(payload: str) -> str:
    """Return JSON that means the same without line breaks between its tokens, and with escapes in its strings."""
    return UNSAFE_TEXT.sub(lambda match: " " if match[0] in "\t\r\n" else json.dumps(match[0])[1:-1], payload)
