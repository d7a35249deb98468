"""`gw list` and `gw count`: list jobs, or count them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gw_cli import output, stderr
from gw_cli.arguments import duration, positive_number
from gw_cli.bulk_command import AllSelected
from gw_cli.command import DEFAULT_LIMIT, MAX_ROWS, After, Json, Limit, Printed, Timeout, command
from gw_cli.connect import open_client
from gw_cli.output import Shape
from gw_cli.records import JOBS, PAYLOAD
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core.front_ends import FrontEnd, counted

if TYPE_CHECKING:
    from gw_core.operations import JobPage

TIMEOUT = "120ms"


@command("list")
@for_each_shard("after")
def list_jobs(
    configuration: Configuration,
    layout: Printed,
    wanted: AllSelected,
    after: After = None,
    limit: Limit = DEFAULT_LIMIT,
    timeout_text: Timeout = TIMEOUT,
    payload: Annotated[bool, typer.Option("--payload", help="Show payloads too")] = False,
) -> None:
    """List jobs.

    Lists matching jobs, oldest first. Lists the waiting jobs, or those of one queue, in the order in which they will
    run; this order ends after a thousand jobs, and --after 0 lists all by id. On a large table a search may end early;
    it then reports the --after to continue from.
    """
    most, timeout = positive_number("--limit", limit, MAX_ROWS), duration("--timeout", timeout_text)
    with open_client(configuration) as client:
        wanted = FrontEnd(client).at_server_time(wanted)
        page = client.jobs.list(wanted, after=after, limit=most, with_payload=payload, timeout=timeout)
        # A separate query finds out whether a full page is the last one: only the page itself has its cursor.
        rest = client.jobs.list(wanted, after=page.after, limit=1, timeout=timeout) if page.is_full else None
    shape = Shape((*JOBS.all, PAYLOAD), f"{JOBS.order} {PAYLOAD.key}") if payload else JOBS
    rows = [{**shape.row(each.job), "state": each.state} for each in page.jobs]
    layout.show(rows, shape)
    _note(page, rest)


def _note(page: JobPage, rest: JobPage | None) -> None:
    """Report what the list does not show; `rest` begins where a full page ended."""
    if page.after is None:
        if not page.jobs:
            stderr.note("No jobs match.")
        elif page.is_full and page.order == "turn":
            stderr.note("More jobs wait than this order lists; list all of them with --after 0")
    elif rest is not None:
        if rest.jobs:
            stderr.note(f"There are more jobs; continue with --after {page.after}")
        elif rest.after is not None:
            stderr.note(f"There may be more jobs; continue with --after {page.after}")
    else:
        stderr.note(
            f"The search checked {counted(page.scanned, 'job')} and found {len(page.jobs)}; there are more to check: "
            f"continue with --after {page.after} or search longer with --timeout 10s"
        )


@command("count")
@for_each_shard()
def count(
    configuration: Configuration,
    wanted: AllSelected,
    as_json: Json = False,
) -> None:
    """Count the jobs of a selection.

    Counts exactly, so it reads every job that can match; gw stats estimates a large queue in milliseconds.
    """
    with open_client(configuration) as client:
        found = client.jobs.count(FrontEnd(client).at_server_time(wanted))
    record = {"jobs": found.jobs, "running": found.running}
    output.answer(counted(found.jobs, "job"), plain=str(found.jobs), record=record, as_json=as_json)
