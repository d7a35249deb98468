"""Stop what returned jobs still run outside of Python's own threads."""

from __future__ import annotations

import sys

from gw_core.execution import executables

# Both are loaded with the first task that needs them.
_COROUTINES = "gw_core.execution.event_loop"
_ISOLATION = "gw_core.execution.process_pool"


def interrupt_returned() -> None:
    """Kill the programs and cancel the coroutines of jobs whose `should_stop` is forced. Does not block."""
    executables.interrupt_returned()
    if _COROUTINES in sys.modules:  # and asyncio with it
        sys.modules[_COROUTINES].SHARED.interrupt_returned()


def kill_returned() -> None:
    """Kill the processes of isolated tasks whose job's `should_stop` is forced, after their timeout. Does not block.

    Their threads would do it a little later, but a process about to end leaves them none.
    """
    if _ISOLATION in sys.modules:
        sys.modules[_ISOLATION].PROCESSES.kill_returned()


def end_idle_processes() -> None:
    """End the processes of isolated tasks that have nothing to do."""
    if _ISOLATION in sys.modules:
        sys.modules[_ISOLATION].PROCESSES.end_idle()
