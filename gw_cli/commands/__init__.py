"""The command `gw`: its options, and its commands, one module each; `gw --help` lists them without loading them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from gw_cli import output
from gw_cli.command import CommandInfo, CommandRegistry, new_app
from gw_core import __version__

ENTRIES: Final = (
    CommandInfo("run", "Run", "Run jobs until stopped, or with --once until none is left"),
    CommandInfo("add", "Jobs", "Add a job"),
    CommandInfo("complete", "Jobs", "Complete jobs without running them", "change"),
    CommandInfo("fail", "Jobs", "Fail jobs permanently", "change"),
    CommandInfo("reschedule", "Jobs", "Change when and how jobs run", "change"),
    CommandInfo("retry", "Jobs", "Retry failed jobs now", "change"),
    CommandInfo("cancel", "Jobs", "Cancel running jobs, and drop jobs that wait for others"),
    CommandInfo("remove", "Jobs", "Remove the job with a key", "change"),
    CommandInfo("pause", "Jobs", "Pause tasks, queues, flags, cron items or everything"),
    CommandInfo("resume", "Jobs", "Resume what is paused", "pause"),
    CommandInfo("limit", "Jobs", "Limit how many jobs of a task run or start"),
    CommandInfo("cron", "Jobs", "Inspect and run recurring tasks"),
    CommandInfo("list", "Inspect", "List jobs"),
    CommandInfo("count", "Inspect", "Count the jobs of a selection", "list"),
    CommandInfo("show", "Inspect", "Show everything about one job"),
    CommandInfo("history", "Inspect", "List jobs that have ended"),
    CommandInfo("actions", "Inspect", "List what operators did", "history"),
    CommandInfo("stats", "Inspect", "Count the jobs by state"),
    CommandInfo("queues", "Inspect", "List named queues"),
    CommandInfo("pauses", "Inspect", "List what is paused", "pause"),
    CommandInfo("limits", "Inspect", "List the limits of tasks", "limit"),
    CommandInfo("groups", "Inspect", "List and cancel jobs that wait for others"),
    CommandInfo("tasks", "Inspect", "List the tasks in the database"),
    CommandInfo("tui", "Inspect", "Monitor and manage the queue in the terminal"),
    CommandInfo("workers", "Workers", "List running and stale workers"),
    CommandInfo("sweep", "Workers", "Recover jobs locked by dead workers", "workers"),
    CommandInfo("unlock", "Workers", "Release all locks of dead workers", "workers"),
    CommandInfo("cleanup", "Maintain", "Delete failed jobs, unused tasks and unused queues"),
    CommandInfo("record-others", "Maintain", "Record jobs that other programs end", "history"),
    CommandInfo("doctor", "Maintain", "Diagnose the queue and suggest fixes"),
    CommandInfo("bench", "Maintain", "Measure how fast a queue is in this database"),
    CommandInfo("sql", "Maintain", "Print a statement of gw, ready for EXPLAIN"),
    CommandInfo("health", "Maintain", "Check that the queue responds, for probes", "doctor"),
    CommandInfo("migrate", "Set up", "Install or update the schema"),
    CommandInfo("grant", "Set up", "Give a database role the rights of a worker, viewer, …"),
    CommandInfo("revoke", "Set up", "Take all rights on the queue back from a database role", "grant"),
    CommandInfo("grants", "Set up", "List the database roles that gw grant has given rights", "grant"),
    CommandInfo("config", "Set up", "Show the configuration"),
    CommandInfo("init", "Set up", "Create a task folder, a crontab and a configuration"),
    CommandInfo("dev", "Set up", "Run jobs and reload task files when they change"),
    CommandInfo("completion", "Set up", "Print the completion script of a shell"),
)
EPILOGUE: Final = (
    "Options can also be set in the environment as GW_OPTION, or in gw.toml or [tool.gw] of pyproject.toml as "
    "option = value. 'gw config show' prints each value and where it comes from."
)


def root_command() -> Any:
    """Return the command `gw`; its commands are loaded on first use."""
    CommandRegistry.entries = ENTRIES
    app = new_app(CommandRegistry, EPILOGUE)
    app.callback()(_gw)
    return typer.main.get_command(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        output.line(f"gw {__version__}")
        raise typer.Exit


def _gw(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version", callback=_show_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error")] = False,
) -> None:
    """Graphile Worker for Python: a PostgreSQL job queue."""
