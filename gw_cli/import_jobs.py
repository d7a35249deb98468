"""Import the jobs of a file: in atomic batches, in bounded memory, with progress."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from gw_cli import output, stderr
from gw_cli.bulk_command import PROGRESS_SECONDS, interruptions
from gw_cli.exit_codes import ExitCode
from gw_cli.job_files import Entry, job_bytes, read
from gw_core.errors import DatabaseUnavailableError, InvalidInputError
from gw_core.events import JobAdded
from gw_core.front_ends import counted

if TYPE_CHECKING:
    from gw_core import Client, JobSpec

BATCH: Final = 10_000
"""Lines in one transaction."""

BATCH_BYTES: Final = 8 * 1024 * 1024
"""And so much of their payloads: memory is bound, however long lines are."""

Jobs = list[tuple[int, "JobSpec"]]
"""Jobs with the numbers of their lines."""

ON_ERROR: Final = ("stop", "skip")


class Import(msgspec.Struct):
    """One file on its way into the queue."""

    client: Client
    skip: bool
    source: BinaryIO
    added: int = 0
    skipped: int = 0
    through: int = 0
    """The last line that was dealt with."""
    sent: int = 0
    """The last line of the batch that was sent last."""
    _is_counting: bool = False
    """Whether the jobs that were added are counted by their events, which a unique job that is there does not have."""
    _began: float = msgspec.field(default_factory=time.monotonic)
    _reported_at: float = msgspec.field(default_factory=time.monotonic)

    def run(self, entries: Iterable[Entry]) -> None:
        """Add all, batch by batch."""
        with interruptions() as interrupted:
            for batch in _batches(entries):
                self._store(self._sound(batch), batch[-1][0])
                if interrupted():
                    raise KeyboardInterrupt

    def _sound(self, batch: list[Entry]) -> Jobs:
        """Return the jobs of a batch; report its invalid lines, or raise at the first."""
        jobs: Jobs = []
        for number, said in batch:
            if type(said) is str:
                self._reject(number, said)
            else:
                jobs.append((number, said))  # type: ignore[arg-type] # the other member of the union
        return jobs

    def _reject(self, line: int, reason: str) -> None:
        if not self.skip:
            raise InvalidInputError(f"line {line}: {reason}")
        self.skipped += 1
        stderr.note(f"line {line} was skipped: {reason}")

    def _store(self, jobs: Jobs, through: int) -> None:
        self.sent = through
        if not self._is_counting and any(spec.unique_for is not None for _, spec in jobs):
            self.client.events.on(JobAdded, self._count)
            self._is_counting = True
        try:
            self._add([spec for _, spec in jobs])
        except InvalidInputError as error:
            if not self.skip:
                first, last = jobs[0][0], jobs[-1][0]
                raise InvalidInputError(f"one of the lines {first} to {last} was rejected: {error}") from error
            self._store_singly(jobs)
        self.through = through
        self._progress()

    def _add(self, specs: list[JobSpec]) -> None:
        ids = self.client.add_many(specs)
        self.added += 0 if self._is_counting else len(ids)

    def _count(self, event: JobAdded) -> None:
        self.added += 1

    def _store_singly(self, jobs: Jobs) -> None:
        """Add the jobs one by one, to find those that PostgreSQL rejects."""
        for line, spec in jobs:
            try:
                self._add([spec])
            except InvalidInputError as error:
                self._reject(line, str(error))

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._reported_at >= PROGRESS_SECONDS:
            self._reported_at = now
            rate = self.added / (now - self._began)
            stderr.note(
                f"Added {counted(self.added, 'job')}, {rate:,.0f}/s, up to line {self.through:,}{self._share()} …"
            )

    def _share(self) -> str:
        """Return how much of a file was read; nothing for a pipe."""
        try:
            size = os.fstat(self.source.fileno()).st_size
            return f", {100 * self.source.tell() / size:.0f} % of the file" if size else ""
        except (OSError, ValueError):
            return ""


def add_from(
    client: Client, source: BinaryIO, *, as_csv: bool, defaults: Mapping[str, Any], skip: bool, as_json: bool
) -> ExitCode:
    """Add the jobs of an open file, say how many, and return the verdict."""
    work = Import(client, skip, source)
    try:
        work.run(read(source, as_csv=as_csv, defaults=defaults))
    except BaseException as error:
        if stays := _what_stays(work, is_lost=isinstance(error, DatabaseUnavailableError)):
            stderr.note(stays)
        raise
    record = {"added": work.added, "skipped": work.skipped, "last_line": work.through}
    output.answer(f"Added {counted(work.added, 'job')}", plain=str(work.added), record=record, as_json=as_json)
    if work.skipped:
        stderr.note(f"{counted(work.skipped, 'line')} of {work.through} skipped.")
    return ExitCode.FAILED if work.skipped else ExitCode.OK


def _what_stays(work: Import, *, is_lost: bool) -> str:
    """Return what an import has done that ends early; with `is_lost`, the answer to its last batch may be missing."""
    added = f"Added {counted(work.added, 'job')} of the lines up to {work.through}, which stay" if work.through else ""
    if is_lost and work.sent > work.through:
        may = f"the lines {work.through + 1} to {work.sent} may have been added too"
        return f"{added}; {may}." if added else f"{may.capitalize()}."
    return f"{added}; nothing of the later lines was added." if added else ""


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    room = BATCH_BYTES
    for entry in entries:
        batch.append(entry)
        said = entry[1]
        room -= len(said) if isinstance(said, str) else job_bytes(said)
        if len(batch) >= BATCH or room <= 0:
            yield batch
            batch, room = [], BATCH_BYTES
    if batch:
        yield batch
