"""`gw cron`: inspect crontabs, check them, and run one of their items now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gw_cli import output, project, stderr
from gw_cli.arguments import positive_number
from gw_cli.bulk_command import operator
from gw_cli.command import Json, Printed, command
from gw_cli.connect import open_client, open_to_change
from gw_cli.exit_codes import ExitCode, NothingMatchedError
from gw_cli.output import Column, JsonText, Shape
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration, table
from gw_cli.sharding import for_each_shard, for_one_shard
from gw_core.errors import InvalidInputError
from gw_core.front_ends import (
    Count,
    Quality,
    counted,
    describe_schedule,
    format_duration,
    parse_time,
    scheduled_until,
)

if TYPE_CHECKING:
    from gw_core import CronItem
    from gw_core.front_ends import CrontabLineError
    from gw_core.operations import KnownCronItem

MAX_RUNS = 100_000

ITEMS: Final = Shape(
    (
        Column("id", "ID", "identifier", shrinks=True),
        Column("task", "TASK", shrinks=True, rank=8),
        Column("schedule", "SCHEDULE", lambda item: str(item.schedule), rank=7),
        Column("tz", "ZONE", "schedule.tz", rank=6),
        Column("description", "WHEN", lambda item: describe_schedule(item.schedule), shrinks=True),
        Column("fill", "FILL", lambda item: format_duration(item.fill) if item.fill else None, rank=6),
        Column("max_attempts", "TRIES", right=True, rank=2),
        Column("queue_name", "QUEUE", shrinks=True, rank=5),
        Column("job_key", "KEY", shrinks=True, rank=4),
        Column("job_key_mode", find=lambda item: None if item.job_key is None else str(item.job_key_mode)),
        Column("priority", "PRIO", right=True, rank=3),
        Column("payload", "PAYLOAD", lambda item: _json(item.payload), shrinks=True, rank=1),
    ),
    order="id description task schedule tz fill queue_name job_key priority max_attempts payload",
)
ERRORS: Final = Shape(tuple(Column(each) for each in ("file", "line", "column", "message", "expected", "text")))
RUNS: Final = Shape(
    (
        Column("at", "AT", lambda run: run[0]),
        Column("id", "ID", lambda run: run[1].identifier, shrinks=True),
        Column("task", "TASK", lambda run: run[1].task, shrinks=True),
    )
)

KNOWN: Final = Shape(
    (
        Column("id", "ID", shrinks=True),
        Column("known_since", "KNOWN SINCE", rank=1),
        Column("last_run", "LAST RUN"),
        Column("next_run", "NEXT RUN"),
        Column("tz", "ZONE", rank=2),
        Column("missed"),
        Column("missed_quality"),
        Column("paused", "PAUSED", shrinks=True, rank=3),
        Column("missed_shown", "MISSED", right=True, shown=True),
    ),
    order="id known_since last_run next_run tz missed_shown paused",
)
MAX_MISSED: Final = 1_000

File = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Crontab; - reads stdin [default: the items of this project]"),
]


@command("cron parse")
def parse(configuration: Configuration, layout: Printed, file: File = None) -> None:
    """Show the items of a crontab.

    With what each means in words. Without FILE, the items of this project: its crontab, gw.toml and @cron.
    """
    items = _items(configuration, file)
    layout.show(items, ITEMS)
    if not items:
        stderr.note("The crontab has no items.")


@command("cron validate")
def validate(
    configuration: Configuration,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Crontabs; - reads stdin [default: the items of this project]"),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option("--tasks", "-t", metavar="DIR", help="Task folder; also check that it has every task")
    ] = None,
    as_json: Json = False,
) -> int:
    """Check crontabs.

    Prints each error as FILE:LINE:COLUMN: message. Exits with 7 if there is one. Without FILE, checks the items of this
    project: its crontab, gw.toml and @cron.
    """
    known = None if tasks is None else _task_names(Path(tasks))
    if files:
        where, (items, errors) = f"in {counted(len(files), 'file')}", _read_files(files, known)
    else:
        where, (items, errors) = "in this project", _read_project(configuration, known)
    now = datetime.now(UTC)
    for source, item in items:
        if item.schedule.next_after(now) is None:
            stderr.note(f"{source}: {quoted(item.identifier)} will not run: {describe_schedule(item.schedule)}")
    _write_errors(errors, as_json=as_json)
    if errors:
        stderr.note(f"{counted(len(errors), 'error')} {where}.")
        return ExitCode.UNHEALTHY
    stderr.note(f"{counted(len(items), 'item')} {where}, no errors.")
    return ExitCode.OK


_Sourced = list[tuple[str, "CronItem"]]
_Errors = list[tuple[str | None, "CrontabLineError | str"]]
"""Errors with their file; a text is an error without a place in a crontab."""


def _read_files(files: Sequence[str], known: Collection[str] | None) -> tuple[_Sourced, _Errors]:
    """Return the items of crontabs, each with the name of its file, and what is wrong."""
    from gw_core.crontab import read_crontab

    items: _Sourced = []
    errors: _Errors = []
    for file in files:
        read, found = read_crontab(project.crontab_text(file), tasks=known)
        items += [(project.shown_name(file), item) for item in read]
        errors += [(file, error) for error in found]
    return items, errors


def _read_project(configuration: Configuration, known: Collection[str] | None) -> tuple[_Sourced, _Errors]:
    """Return the items that a worker of this project would schedule, and what is wrong."""
    from gw_core.errors import CrontabError
    from gw_core.front_ends import reject_duplicates

    wrong: list[str] = []
    marked: Sequence[CronItem] = ()
    tasks = project.registry(configuration, report=wrong.append)
    try:
        marked = tasks.cron_items
    except InvalidInputError as error:
        wrong.append(str(error))
    written = configuration[table.CRON]
    crontab = project.crontab_file(configuration)
    # Without any items, the message is that of the crontab that is missing.
    files = [str(crontab or project.USUAL_CRONTAB)] if crontab or not (written or marked or wrong) else []
    items, errors = _read_files(files, known)
    errors += [(None, each) for each in wrong]
    if known is not None:
        errors += [(None, f"gw.toml: unknown task {quoted(each.task)}") for each in written if each.task not in known]
    items += [*(("gw.toml", each) for each in written), *(("@cron", each) for each in marked)]
    try:
        reject_duplicates(item for _, item in items)
    except CrontabError as error:
        errors.append((None, str(error)))
    return items, errors


@command("cron next")
def next_runs(
    configuration: Configuration,
    layout: Printed,
    file: File = None,
    number: Annotated[
        str, typer.Option("--number", "-n", metavar="N", help=f"Number of runs, up to {MAX_RUNS}")
    ] = "10",
    after: Annotated[
        str, typer.Option("--after", metavar="TIME", help="Runs after this time: 2026-01-31T08:00:00Z or +5m")
    ] = "now",
    item: Annotated[str | None, typer.Option("--item", "-i", metavar="ID", help="Only runs of this item")] = None,
) -> None:
    """Show the next runs of a crontab.

    Of all its items together, in the order of time. Without FILE, of all items of this project.
    """
    most = positive_number("--number", number, MAX_RUNS)
    items = _items(configuration, file)
    chosen = items if item is None else [_find(items, item)]
    runs = list(islice(_upcoming(chosen, parse_time(after, datetime.now(UTC))), most))
    layout.show(runs, RUNS)
    if not runs:
        stderr.note("No item will ever run.")


@command("cron run")
@for_one_shard
def run(
    configuration: Configuration,
    item: Annotated[str, typer.Argument(metavar="ID", help="The item's identifier.")],
    as_json: Json = False,
) -> None:
    """Add the job of one item now.

    The item is one of the crontab or of @cron. Its schedule is not affected: the next run comes when it is due.
    """
    from dataclasses import replace

    from gw_core.errors import JobSkipped

    found = _find(project.cron_items(configuration), item)
    spec = replace(found.job_spec(datetime.now(UTC), backfilled=False), run_at=None)
    with open_to_change(configuration) as client:
        try:
            job = client.add(spec)
        except JobSkipped as skipped:
            raise InvalidInputError(f"the job was not added: {skipped}") from None
    output.answer(
        f"Added job {job.id} ({found.task}) of item {quoted(found.identifier)}.",
        plain=str(job.id),
        record={"job": job.id, "id": found.identifier, "task": found.task},
        as_json=as_json,
    )


@command("cron list")
@for_each_shard()
def list_known(
    configuration: Configuration,
    layout: Printed,
) -> None:
    """Show the items the database knows.

    With the pause of each, if it is paused. For items of this project, from its crontab, gw.toml and @cron, it also
    shows the next run, the time zone and the number of runs missed since the last one.
    """
    items = {item.identifier: item for item in project.cron_items(configuration)}
    with open_client(configuration) as client:
        known = client.cron.list()
    now = datetime.now(UTC)
    rows = [_known_record(each, items.get(each.identifier), now) for each in known]
    layout.show(rows, KNOWN)
    if not rows:
        stderr.note("The database knows no recurring tasks.")


@command("cron forget")
@for_each_shard()
def forget(
    configuration: Configuration,
    item: Annotated[str, typer.Argument(metavar="ID", help="The item's identifier.")],
    as_json: Json = False,
) -> None:
    """Forget an item the database knows.

    A worker that still has the item in its crontab registers it again, without backfilling missed runs.
    """
    with open_to_change(configuration) as client:
        forgotten = client.cron.forget(item, by=operator())
    if forgotten is None:
        raise NothingMatchedError(f"the database knows no recurring task {quoted(item)}; nothing was forgotten")
    record = {
        "id": forgotten.identifier,
        "known_since": forgotten.known_since,
        "last_run": forgotten.last_execution,
    }
    output.answer(f"Forgot {quoted(forgotten.identifier)}.", plain=forgotten.identifier, record=record, as_json=as_json)


# -- reading ---------------------------------------------------------------------------------------------------------


def _items(configuration: Configuration, file: str | None) -> Sequence[CronItem]:
    """Return the items of a file, or without one all items of this project."""
    return project.cron_items(configuration) if file is None else project.items_of_file(file)


def _known_record(known: KnownCronItem, item: CronItem | None, now: datetime) -> dict[str, object]:
    next_run, missed = None, None
    if item is not None:
        this_minute = now.replace(second=0, microsecond=0)  # whose run may be on its way
        next_run = item.schedule.next_after(scheduled_until(known, now))
        runs = item.schedule.between(known.missed_from, this_minute)
        found = sum(1 for _ in islice(runs, MAX_MISSED + 1))
        missed = Count(found) if found <= MAX_MISSED else Count(MAX_MISSED, Quality.AT_LEAST)
    return {
        "id": known.identifier,
        "known_since": known.known_since,
        "last_run": known.last_execution,
        "next_run": next_run,
        "tz": None if item is None else item.schedule.tz,
        "missed": None if missed is None else missed.value,
        "missed_quality": None if missed is None else missed.quality.value,
        "missed_shown": missed,
        "paused": None if known.pause is None else known.pause.description,
    }


def _find(items: Sequence[CronItem], identifier: str) -> CronItem:
    for item in items:
        if item.identifier == identifier:
            return item
    known = ", ".join(quoted(item.identifier) for item in items)
    hint = f"items are {known}" if known else "there are none; add one to the crontab or with @cron"
    raise NothingMatchedError(f"unknown cron item {quoted(identifier)}; {hint}")


def _task_names(folder: Path) -> frozenset[str]:
    from gw_core.front_ends import load_folder

    # A file that cannot be loaded would make its tasks look missing: strictly, it is an error of its own.
    return frozenset(load_folder(folder, strict=True).registry.identifiers)


def _upcoming(items: Sequence[CronItem], after: datetime) -> Iterator[tuple[datetime, CronItem]]:
    def runs_of(item: CronItem) -> Iterator[tuple[datetime, CronItem]]:
        return ((run_at, item) for run_at in item.schedule.upcoming(after))

    return merge(*map(runs_of, items), key=lambda run: run[0])


# -- showing ---------------------------------------------------------------------------------------------------------


def _json(payload: object) -> JsonText | None:
    import json

    return None if payload is None else JsonText(json.dumps(payload, ensure_ascii=False))


def _write_errors(errors: _Errors, *, as_json: bool) -> None:
    if as_json:
        rows = [{"file": file, **_error_record(error)} for file, error in errors]
        output.records(rows, ERRORS, as_json=True)
        return
    for file, error in errors:
        # The message was escaped where it was built.
        output.line(error if isinstance(error, str) else error.located(project.shown_name(file or "")))


def _error_record(error: CrontabLineError | str) -> dict[str, object]:
    if isinstance(error, str):
        return {**dict.fromkeys(ERRORS.keys[1:]), "message": error}
    return {key: getattr(error, key) for key in ERRORS.keys[1:]}
