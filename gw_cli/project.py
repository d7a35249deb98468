"""Find what a worker started here would run: its tasks and its cron items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gw_cli import stderr
from gw_cli.arguments import STDIN, read_text
from gw_cli.sanitize import quoted, visible
from gw_cli.settings import Configuration, table
from gw_cli.settings.config_file import why_untrusted, why_untrusted_folder
from gw_core.errors import InvalidInputError

if TYPE_CHECKING:
    from gw_core import CronItem, TaskRegistry

STRENGTH: Final = ("flag", "environment", "file", "default")
USUAL_CRONTAB: Final = "crontab"


def task_source(configuration: Configuration) -> TaskRegistry | Path:
    """Return the registry of --app, or the folder, for a worker."""
    if not _is_app(configuration):
        return configuration[table.TASKS]
    from gw_core.front_ends import load_app

    return load_app(str(configuration[table.APP]))


def _is_app(configuration: Configuration) -> bool:
    """Return whether --app counts, and not --tasks: the one that was set more strongly."""
    app, folder = configuration.origin(table.APP), configuration.origin(table.TASKS)
    if app.kind == folder.kind != "default":
        raise InvalidInputError(f"{app}: app and tasks were both given; give one of them")
    return STRENGTH.index(app.kind) < STRENGTH.index(folder.kind)


def registry(
    configuration: Configuration, *, is_required: bool = False, report: Callable[[str], None] = stderr.note
) -> TaskRegistry:
    """Return the tasks, for commands that do not run them; empty without a task folder.

    Loading a task file runs it. So a folder that another user can write counts only if the option names it; otherwise
    it is ignored with a notice, or an error if `is_required`. `report` gets a message for each file that cannot be
    loaded.
    """
    if _is_app(configuration):
        return _of_app(configuration)
    return _of_folder(configuration, is_required=is_required, report=report)


def _of_folder(configuration: Configuration, *, is_required: bool, report: Callable[[str], None]) -> TaskRegistry:
    from gw_core import TaskRegistry
    from gw_core.front_ends import load_folder

    folder: Path = configuration[table.TASKS]
    if not folder.is_dir():
        return TaskRegistry()
    is_named = configuration.origin(table.TASKS).kind == "flag"
    if not is_named and (reason := why_untrusted_folder(folder)) is not None:
        shown = visible(str(folder))
        remedy = f"because {reason}; to use them anyway, give {table.TASKS.flag}"
        if is_required:
            raise InvalidInputError(f"the tasks in {shown} are not loaded, {remedy}")
        stderr.note(f"Ignoring the tasks in {shown}, {remedy}.")
        return TaskRegistry()
    loaded = load_folder(folder)
    for error in loaded.errors:
        report(f"Skipped a task file: {error}")
    return loaded.registry


def _of_app(configuration: Configuration) -> TaskRegistry:
    from gw_core.front_ends import load_app

    here, is_named = Path.cwd(), configuration.origin(table.APP).kind == "flag"
    reason = None if is_named else why_untrusted(here)
    if reason is not None:
        remedy = f"because {reason}; to search it anyway, give {table.APP.flag}"
        stderr.note(f"Not searching {visible(str(here))} for the app, {remedy}.")
    return load_app(str(configuration[table.APP]), from_here=reason is None)


def crontab_file(configuration: Configuration) -> Path | None:
    """Return the crontab: the given one, or the file `crontab` beside the task folder."""
    given = configuration[table.CRONTAB]
    beside_tasks = Path(configuration[table.TASKS]).parent / USUAL_CRONTAB
    return given if given is not None else beside_tasks if beside_tasks.is_file() else None


def cron_items(configuration: Configuration) -> Sequence[CronItem]:
    """Return the items of the crontab, of `gw.toml`, then those that tasks declare with `@cron`."""
    from gw_core.front_ends import reject_duplicates

    items: Sequence[CronItem] = reject_duplicates((*written_items(configuration), *registry(configuration).cron_items))
    return items


def written_items(configuration: Configuration) -> Sequence[CronItem]:
    """Return the items of the crontab and of `gw.toml`; raises `CrontabError` when two share an identifier."""
    from gw_core.front_ends import reject_duplicates

    file = crontab_file(configuration)
    items: Sequence[CronItem] = () if file is None else items_of_file(str(file))
    return reject_duplicates((*items, *configuration[table.CRON]))


def items_of_file(file: str) -> Sequence[CronItem]:
    """Return the items of a crontab; `-` is stdin."""
    from gw_core.crontab import parse_crontab

    items: Sequence[CronItem] = parse_crontab(crontab_text(file), source=shown_name(file))
    return items


def crontab_text(file: str) -> str:
    """Return the text of a crontab; `-` is stdin."""
    return read_text(file, f"the crontab {quoted(file)}")


def shown_name(file: str) -> str:
    """Return the name of a crontab for messages."""
    return "stdin" if file == STDIN else visible(file)
