"""Add the jobs of a file: in batches that are all or nothing, in bounded memory, telling how far it came."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from gw_cli import diagnostics, output
from gw_cli.acting import PROGRESS_SECONDS, counted, interruptions
from gw_cli.exit_codes import ExitCode
from gw_cli.job_files import Entry, Fault, NumberedJob, read
from gw_core import InvalidInputError

if TYPE_CHECKING:
    from gw_core import Client

BATCH: Final = 5_000
"""Lines in one transaction."""

ON_ERROR: Final = ("stop", "skip")


@dataclass(slots=True)
class Import:
    """One file on its way into the queue."""

    client: Client
    skip: bool
    added: int = 0
    refused: int = 0
    through: int = 0
    """The last line that was dealt with."""
    _told_at: float = field(default_factory=time.monotonic)

    def run(self, entries: Iterable[Entry]) -> None:
        """Add all; while the database stores one batch, the lines of the next are read."""
        with ThreadPoolExecutor(1, "gw-import") as storing, interruptions() as interrupted:
            under_way: Future[None] | None = None
            try:
                for batch in _batches(entries):
                    jobs = self._sound(batch)
                    if under_way is not None:
                        under_way.result()
                    if interrupted():
                        raise KeyboardInterrupt
                    under_way = storing.submit(self._store, jobs, batch[-1].line)
            finally:
                if under_way is not None:
                    under_way.result()

    def _sound(self, batch: list[Entry]) -> list[NumberedJob]:
        """Return the jobs of a batch; its faults are told, or end it all."""
        for entry in batch:
            if isinstance(entry, Fault):
                self._refuse(entry)
        return [entry for entry in batch if isinstance(entry, NumberedJob)]

    def _refuse(self, fault: Fault) -> None:
        if not self.skip:
            raise InvalidInputError(f"line {fault.line}: {fault.reason}")
        self.refused += 1
        diagnostics.note(f"line {fault.line} was skipped: {fault.reason}")

    def _store(self, jobs: list[NumberedJob], through: int) -> None:
        try:
            self.added += len(self.client.add_many([job.spec for job in jobs]))
        except InvalidInputError as error:
            if not self.skip:
                first, last = jobs[0].line, jobs[-1].line
                raise InvalidInputError(f"one of the lines {first} to {last} was refused: {error}") from error
            self._store_singly(jobs)
        self.through = through
        self._progress()

    def _store_singly(self, jobs: list[NumberedJob]) -> None:
        """Add the jobs one by one, which finds those that PostgreSQL refuses."""
        for job in jobs:
            try:
                self.added += len(self.client.add_many([job.spec]))
            except InvalidInputError as error:
                self._refuse(Fault(job.line, str(error)))

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._told_at >= PROGRESS_SECONDS:
            self._told_at = now
            diagnostics.note(f"Added {counted(self.added)}, up to line {self.through} …")


def add_from(
    client: Client, source: BinaryIO, *, as_csv: bool, defaults: Mapping[str, Any], skip: bool, as_json: bool
) -> ExitCode:
    """Add the jobs of an open file, say how many, and return the verdict."""
    work = Import(client, skip)
    try:
        work.run(read(source, as_csv=as_csv, defaults=defaults))
    except BaseException:
        if work.through:
            diagnostics.note(
                f"Added {counted(work.added)} of the lines up to {work.through}, which stay; "
                "nothing of the later lines was added."
            )
        raise
    record = {"added": work.added, "refused": work.refused, "lines": work.through}
    output.answer(f"Added {counted(work.added)}", plain=str(work.added), record=record, as_json=as_json)
    if work.refused:
        diagnostics.note(f"{counted(work.refused, 'line')} of {work.through} skipped.")
    return ExitCode.FAILED if work.refused else ExitCode.OK


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    remaining = iter(entries)
    while batch := list(islice(remaining, BATCH)):
        yield batch
