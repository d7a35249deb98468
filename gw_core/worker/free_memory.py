"""Return memory to the operating system after large payloads."""

from __future__ import annotations

from contextlib import suppress


def return_free_memory() -> None:
    """Return what glibc keeps of freed memory, which may be most of a worker's; other C libraries return it themselves.

    It takes some milliseconds, during which other threads run.
    """
    import ctypes  # rarely needed

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
