"""Reach what jobs run outside of Python's own threads when they are given back."""

from __future__ import annotations

import sys

from gw_core.worker import executables

_COROUTINES = "gw_core.worker.coroutines"


def interrupt_given_back() -> None:
    """Kill the programs and cancel the coroutines of jobs whose `should_stop` is forced; returns at once."""
    executables.interrupt_given_back()
    if _COROUTINES in sys.modules:  # loaded with the first async task, and asyncio with it
        sys.modules[_COROUTINES].SHARED.interrupt_given_back()
