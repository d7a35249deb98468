"""Find what a worker started here would run: its tasks and its cron items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gw_cli import stderr
from gw_cli.arguments import STDIN, read_text
from gw_cli.sanitize import quoted, visible
from gw_cli.settings import Configuration, table
from gw_core.errors import InvalidInputError

if TYPE_CHECKING:
    from gw_core import CronItem, TaskRegistry

STRENGTH: Final = ("flag", "environment", "file", "default")
USUAL_CRONTAB: Final = "crontab"


def task_source(configuration: Configuration) -> TaskRegistry | Path:
    """Return the registry of --app, or the folder; when both are set, the one that was set more strongly."""
    app, folder = configuration.origin(table.APP), configuration.origin(table.TASKS)
    if app.kind == folder.kind != "default":
        raise InvalidInputError(f"{app}: app and tasks were both given; give one of them")
    is_app = STRENGTH.index(app.kind) < STRENGTH.index(folder.kind)
    if not is_app:
        return configuration[table.TASKS]
    from gw_core import load_app

    return load_app(str(configuration[table.APP]))


def registry(configuration: Configuration) -> TaskRegistry:
    """Return the tasks; empty without a task folder. Files that cannot be loaded are reported."""
    from gw_core import TaskRegistry, load_folder

    source = task_source(configuration)
    if not isinstance(source, Path):
        return source
    if not source.is_dir():
        return TaskRegistry()
    loaded = load_folder(source)
    for error in loaded.errors:
        stderr.note(f"Skipped a task file: {error}")
    return loaded.registry


def crontab_file(configuration: Configuration) -> Path | None:
    """Return the crontab: the given one, or the file `crontab` beside the task folder."""
    given = configuration[table.CRONTAB]
    beside_tasks = Path(configuration[table.TASKS]).parent / USUAL_CRONTAB
    return given if given is not None else beside_tasks if beside_tasks.is_file() else None


def cron_items(configuration: Configuration) -> Sequence[CronItem]:
    """Return the items of the crontab, of `gw.toml`, then those that tasks declare with `@cron`."""
    from gw_core.crontab import reject_duplicates

    items: Sequence[CronItem] = reject_duplicates((*written_items(configuration), *registry(configuration).cron_items))
    return items


def written_items(configuration: Configuration) -> Sequence[CronItem]:
    """Return the items of the crontab and of `gw.toml`; raises `CrontabError` when two share an identifier."""
    from gw_core.crontab import reject_duplicates

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
