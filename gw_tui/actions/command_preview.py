"""The equivalent `gw` command of an action, as words; a shell does the same with them as the console does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gw_core import JobSpec
from gw_core.front_ends import DEFAULT_SCHEMA, UNSAFE_TEXT, encode_payload

Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class CommandPreview:
    """Writes actions as commands for one schema."""

    schema: str = DEFAULT_SCHEMA

    def retry(self, ids: Sequence[int]) -> Words:
        """Retry failed jobs now; permanently failed ones get all their attempts again."""
        return self._gw("retry", *map(str, ids))

    def reschedule(
        self,
        ids: Sequence[int],
        *,
        run_at: datetime | None = None,
        priority: int | None = None,
        attempts: int | None = None,
        max_attempts: int | None = None,
    ) -> Words:
        """Change when and how jobs run. Without a change, the preview sets `run_at` to in an hour."""
        given = {"priority": priority, "attempts": attempts, "max_attempts": max_attempts}
        numbers = {name: str(value) for name, value in given.items() if value is not None}
        if run_at is not None:
            numbers = {"run_at": run_at.isoformat(), **numbers}
        return self._gw("reschedule", *map(str, ids), *_options(numbers or {"run_at": "+1h"}))

    def fail(self, ids: Sequence[int], reason: str | None = "failed manually") -> Words:
        """Fail jobs permanently."""
        return self._gw("fail", *map(str, ids), *_options({"reason": reason}))

    def complete(self, ids: Sequence[int]) -> Words:
        """Remove jobs as if they had been completed."""
        return self._gw("complete", *map(str, ids))

    def remove_by_key(self, key: str) -> Words:
        """Remove the job with a key, or keep it from running again when it runs."""
        return self._gw("remove", *_unmistaken((key,)))

    def add(self, spec: JobSpec, payload: str | None = None) -> Words:
        """Add a job; `payload` is its payload as JSON text, or None for the one of `spec`."""
        options = {
            "payload": _on_one_line(encode_payload(spec.payload) if payload is None else payload),
            "queue": spec.queue_name,
            "run_at": spec.run_at.isoformat() if isinstance(spec.run_at, datetime) else None,
            "max_attempts": _number(spec.max_attempts),
            "job_key": spec.job_key,
            "job_key_mode": None if spec.job_key is None else spec.job_key_mode.value,
            "priority": _number(spec.priority),
        }
        flags = [word for flag in spec.flags for word in _options({"flag": flag})]
        return self._gw("add", *_unmistaken((spec.task,), *_options(options), *flags))

    def forget(self, identifier: str) -> Words:
        """Forget a recurring task."""
        return self._gw("cron", "forget", *_unmistaken((identifier,)))

    def sweep(self) -> Words:
        """Return the jobs of dead workers, their attempts not counted."""
        return self._gw("sweep")

    def clean(self, target: str) -> Words:
        """Delete what is no longer needed."""
        return self._gw("cleanup", target)

    def unlock(self, workers: Sequence[str]) -> Words:
        """Take every lock from dead workers."""
        return self._gw("unlock", *_unmistaken(workers))

    def cancel(self, ids: Sequence[int]) -> Words:
        """Cancel running jobs."""
        return self._gw("cancel", *map(str, ids))

    def pause(self, target: str, reason: str | None) -> Words:
        """Pause a task or a queue."""
        return self._gw("pause", *_options({"reason": reason}), target)

    def limit(self, task: str, running: int | None) -> Words:
        """Limit how many jobs of a task run at a time, or remove its limit."""
        if running is None:
            return self._gw("limit", *_unmistaken((task,), "--off"))
        return self._gw("limit", *_unmistaken((task,), *_options({"running": str(running)})))

    def resume(self, target: str) -> Words:
        """Resume a task or a queue."""
        return self._gw("resume", target)

    def _gw(self, *words: str) -> Words:
        """Return a command; options may stand before its verb's arguments only, for `--` may follow."""
        verb = 2 if words[0] == "cron" else 1
        where = [] if self.schema == DEFAULT_SCHEMA else [f"--schema={self.schema}"]
        return ["gw", *words[:verb], *where, *words[verb:]]


def _options(given: Mapping[str, str | None]) -> list[str]:
    """Return options with their values in one word each: a value that begins with a dash is none of them."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None]


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _unmistaken(names: Sequence[str], *options: str) -> Words:
    """Return options and names so that a worker called `-x` is not taken for an option."""
    return [*options, "--", *names] if any(name.startswith("-") for name in names) else [*names, *options]


def _on_one_line(payload: str) -> str:
    """Return JSON that means the same without line breaks between its tokens, and with escapes in its strings."""
    return UNSAFE_TEXT.sub(lambda match: " " if match[0] in "\t\r\n" else json.dumps(match[0])[1:-1], payload)
