"""Jobs that are returned: what runs for them outside of Python's own threads."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from support.task_builders import DEADLINE, LoadedTask, LogRecorder, a_context, attempt, in_thread, write_program

from gw_core import TaskRegistry
from gw_core.execution import executables
from gw_core.front_ends import Returned


def test_programs_and_coroutines_of_returned_jobs_end_without_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executables, "_TICK", 2 * DEADLINE)
    began, log, registry = threading.Event(), LogRecorder(), TaskRegistry()
    program = write_program(tmp_path / "slow", "#!/bin/sh\necho ready\nexec sleep 600\n")
    registry.add(LoadedTask("slow", executables.compose_executable(program), str(program)))

    @registry.task
    async def waits(payload: Any) -> None:
        began.set()
        await asyncio.Event().wait()

    contexts = [a_context(log=log) for _ in registry]
    ends = [
        in_thread(lambda task=task, context=context: attempt(task, context=context))  # type: ignore[misc]
        for task, context in zip(registry, contexts, strict=True)
    ]
    assert began.wait(DEADLINE)
    log.wait_for("ready")

    for context in contexts:
        context.should_stop.force()

    assert [type(ended()) for ended in ends] == [Returned, Returned]
