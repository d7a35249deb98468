"""Memory and CPU time of processes, as the system counts them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

RESIDENT: Final = "VmRSS"
PEAK: Final = "VmHWM"


def memory_kib(pid: int, field: str = RESIDENT) -> int:
    """Return the memory of a process in KiB; 0 if it has ended, or if the system does not report it."""
    return int((field_of(f"/proc/{pid}/status", field) or "0").split()[0])


def field_of(file: str, name: str) -> str | None:
    """Return the first field of this name in a file of the system; None without the file or the field."""
    try:
        lines = Path(file).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds that these processes have used; a process that is not on this machine counts as none."""
    nanoseconds = 0
    for pid in pids:
        # Of each thread, in nanoseconds: the ticks of `stat` are longer than what an idle session uses in ten seconds.
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(FileNotFoundError, ProcessLookupError):
                nanoseconds += int(thread.read_text().split()[0])
    return nanoseconds / 1e9
