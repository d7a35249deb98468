"""Read what a runner runs: its tasks, its cron items and its forbidden flags."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from gw_core.domain.durations import shown
from gw_core.domain.errors import CrontabError, InvalidSettingError, TaskLoadError
from gw_core.domain.rules.only import Only
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.tasks.loading import LoadedTasks, load_folder
from gw_core.tasks.registry import TaskRegistry
from gw_core.worker.claim_policy import ForbiddenFlags

if TYPE_CHECKING:
    from gw_core.domain.cron.cron_item import CronItem
    from gw_core.maintenance.cron_scheduler import ItemSource

Tasks = TaskRegistry | Path | str
"""A registry, or the folder of task files.

Example: docs/api/types.md
"""
Crontab: TypeAlias = "ItemSource | Path | str | None"
"""Items, a function that returns them, the text of a crontab, or the `Path` of a file."""


def load_tasks(
    tasks: Tasks, settings: WorkerSettings, *, watch: bool, log: logging.Logger | None
) -> tuple[TaskRegistry, LoadedTasks | None]:
    """Return the tasks to run, and what was loaded of a folder, with problems in its files logged.

    Raises `TaskLoadError` if there are no tasks.
    """
    if isinstance(tasks, TaskRegistry):
        tasks.complete()
        tasks.check_isolated()
        if watch:
            raise InvalidSettingError("watch reloads the files of a task folder; pass the folder as tasks")
        if not tasks.identifiers:
            raise TaskLoadError("the task registry has no tasks; register at least one")
        return tasks, None
    if not isinstance(tasks, str | os.PathLike):
        raise InvalidSettingError(f"tasks must be a TaskRegistry or a folder, not {type(tasks).__name__}")
    loaded = load_folder(Path(tasks), strict=settings.strict, executable_env=settings.executable_env)
    if log is not None:
        for notice in loaded.notices:
            log.info("%s", notice)
        for warning in loaded.warnings:
            log.warning("%s", warning)
        for problem in loaded.errors:
            log.error("%s", problem)
    if not loaded.registry.identifiers:
        raise TaskLoadError(f"no tasks in {loaded.root}; add a file such as hello.py with def hello(payload)")
    return loaded.registry, loaded


def check_only(only: Sequence[str], registry: TaskRegistry) -> None:
    """Raise `TaskLoadError` for a task to which the worker is restricted, and which it does not have."""
    for name in sorted(Only.parse(only).tasks):
        if name not in registry.identifiers:
            similar = get_close_matches(name, registry.identifiers, n=1)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            raise TaskLoadError(f"the worker is to run only {name!r}, and no such task is loaded{hint}")


def checked_flags(flags: ForbiddenFlags) -> ForbiddenFlags:
    """Return the flags. Raises `InvalidSettingError` for a string and for a coroutine function."""
    if isinstance(flags, str):
        raise InvalidSettingError(f"forbidden_flags must be a list of names, not a string; use [{flags!r}]")
    if inspect.iscoroutinefunction(flags):
        raise InvalidSettingError("forbidden_flags must not be an async function; pass a function that returns a list")
    return flags


def items_of(crontab: Iterable[CronItem] | Path | str | None) -> tuple[CronItem, ...]:
    """Return the items of a crontab: a file, its text, or items."""
    if crontab is None:
        return ()
    from gw_core.domain.cron.crontab import parse_crontab  # imports the JSON5 parser

    if isinstance(crontab, Path):
        try:
            text = crontab.read_bytes().decode()  # as it is: text files in Python have one kind of line break
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise CrontabError(f"cannot read the crontab {str(crontab)!r}: {reason}") from error
        return parse_crontab(text, source=str(crontab))
    if not isinstance(crontab, str):
        return checked_items(crontab)
    if crontab and not crontab.isspace() and len(crontab.split()) == 1:
        raise CrontabError(
            f"crontab {shown(crontab)} is not the text of a crontab; for a file, pass Path({shown(crontab)})"
        )
    return parse_crontab(crontab)


def checked_items(items: Iterable[CronItem]) -> tuple[CronItem, ...]:
    """Return the items. Raises `CrontabError` if one is anything else."""
    from gw_core.domain.cron.cron_item import CronItem

    checked = tuple(items)
    for each in checked:
        if not isinstance(each, CronItem):
            raise CrontabError(f"a crontab has items made by cron_item(), not {type(each).__name__}")
    return checked
