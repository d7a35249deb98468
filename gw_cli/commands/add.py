"""`gw add`: add a job, or those of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gw_cli import output
from gw_cli.arguments import duration, expiry, one_of, payload_text, point_in_time, whole_number
from gw_cli.command import Json, command
from gw_cli.connect import open_to_change
from gw_cli.exit_codes import ExitCode
from gw_cli.records import job_record
from gw_cli.settings import Configuration
from gw_cli.sharding import for_one_shard
from gw_cli.stderr import note
from gw_core.errors import InvalidInputError
from gw_core.front_ends import FrontEnd

if TYPE_CHECKING:
    from gw_core import Job


@command("add")
@for_one_shard
def add(
    configuration: Configuration,
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="Task to run, such as reports/weekly")] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", "-p", metavar="JSON", help="Payload; - reads stdin [default: {}]")
    ] = None,
    payload_file: Annotated[
        str | None, typer.Option("--payload-file", metavar="FILE", help="File with the payload; - reads stdin")
    ] = None,
    queue: Annotated[
        str | None, typer.Option("--queue", "-q", metavar="NAME", help="Named queue; its jobs run one at a time")
    ] = None,
    run_at: Annotated[
        str | None,
        typer.Option("--run-at", metavar="TIME", help="Earliest start: 2026-01-31T08:00:00Z or +5m [default: now]"),
    ] = None,
    max_attempts: Annotated[
        str | None, typer.Option("--max-attempts", metavar="N", help="Maximum number of attempts [default: 25]")
    ] = None,
    job_key: Annotated[
        str | None,
        typer.Option("--job-key", "-k", metavar="KEY", help="Job key; replaces the waiting job that has the same key"),
    ] = None,
    job_key_mode: Annotated[
        str | None,
        typer.Option(
            "--job-key-mode", metavar="MODE", help="replace, preserve_run_at or unsafe_dedupe [default: replace]"
        ),
    ] = None,
    priority: Annotated[
        str | None, typer.Option("--priority", metavar="N", help="Priority; lower numbers run first [default: 0]")
    ] = None,
    flag: Annotated[
        list[str] | None, typer.Option("--flag", metavar="FLAG", help="Flag of the job (repeatable)")
    ] = None,
    after: Annotated[
        list[str] | None, typer.Option("--after", metavar="ID", help="Job that has to end first (repeatable)")
    ] = None,
    on_failure: Annotated[
        str | None,
        typer.Option("--on-failure", metavar="ACTION", help="If such a job fails: hold, cancel or run [default: hold]"),
    ] = None,
    unique_for: Annotated[
        str | None,
        typer.Option("--unique-for", metavar="DURATION", help="Add it once within this time, by its task and payload"),
    ] = None,
    expires_at: Annotated[
        str | None,
        typer.Option("--expires-at", metavar="TIME", help="Fail it unless it has started by then, such as +5m"),
    ] = None,
    from_file: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="File of jobs, JSON lines or CSV; - reads stdin")
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="Format of the file: jsonl or csv [default: by its name]"),
    ] = None,
    on_error: Annotated[
        str, typer.Option("--on-error", metavar="ACTION", help="On an invalid line: stop or skip")
    ] = "stop",
    strict: Annotated[bool, typer.Option("--strict", help="Reject a task identifier that was never used")] = False,
    as_json: Json = False,
) -> int:
    """Add a job.

    Prints the job's id. With --from, adds the jobs of a file instead, in atomic batches; the other options are the
    defaults of its lines. With --unique-for, prints the id of the job that was added within this time, if there is one.
    """
    from gw_cli.typos import doubt_about
    from gw_core import JobKeyMode, JobSpec
    from gw_core.errors import JobSkipped
    from gw_core.events import JobAdded
    from gw_core.front_ends import NameKind

    long_work = _given(
        {
            "after": None if after is None else [whole_number("--after", each) for each in after],
            "on_failure": on_failure,
            "unique_for": None if unique_for is None else duration("--unique-for", unique_for),
            "expires_at": expiry("--expires-at", expires_at),
        }
    )
    if from_file is not None:
        if not payload is payload_file is job_key is job_key_mode is None:
            raise InvalidInputError("the lines of the file have payloads and keys; leave the options out")
        defaults = {
            "task": task,
            "queue_name": queue,
            "run_at": point_in_time("--run-at", run_at),
            "max_attempts": whole_number("--max-attempts", max_attempts),
            "priority": whole_number("--priority", priority),
            "flags": tuple(flag) if flag else None,
            **long_work,
        }
        JobSpec(**{"task": "any", **_given(defaults)})  # A wrong option is not an error of every line.
        return _add_from(configuration, from_file, file_format, on_error, _given(defaults), as_json=as_json)
    if task is None:
        raise InvalidInputError("missing argument 'TASK', or --from FILE; see gw add --help")
    mode = JobKeyMode(one_of("--job-key-mode", job_key_mode, [*JobKeyMode]) or JobKeyMode.REPLACE)
    if job_key_mode is not None and job_key is None:
        raise InvalidInputError("--job-key-mode was given without a key; give --job-key as well")
    spec = JobSpec(
        task=task,
        queue_name=queue,
        run_at=point_in_time("--run-at", run_at),
        max_attempts=whole_number("--max-attempts", max_attempts),
        job_key=job_key,
        job_key_mode=mode,
        priority=whole_number("--priority", priority),
        flags=tuple(flag or ()),
        **long_work,
    )
    text = payload_text(payload, payload_file)
    with open_to_change(configuration, "adder") as client:
        doubt = doubt_about(client, NameKind.TASKS, task)
        if doubt and strict:
            raise InvalidInputError(f"{doubt} (--strict)")
        added: list[JobAdded] = []
        client.events.on(JobAdded, added.append)
        try:
            job = FrontEnd(client).add_json(spec, text)
        except JobSkipped as skipped:
            raise InvalidInputError(f"the job was not added: {skipped}") from None
    if doubt:
        note(doubt)
    is_deduplicated = spec.job_key_mode is JobKeyMode.UNSAFE_DEDUPE and job.revision > 0
    _answer(job, untouched=is_deduplicated or not added, as_json=as_json)
    return ExitCode.OK


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _add_from(
    configuration: Configuration,
    path: str,
    file_format: str | None,
    on_error: str,
    defaults: Mapping[str, Any],
    *,
    as_json: bool,
) -> ExitCode:
    from gw_cli import (
        import_jobs,
        job_files,  # late: one job needs neither threads nor CSV
    )

    one_of("--on-error", on_error, import_jobs.ON_ERROR)
    one_of("--format", file_format, ("jsonl", "csv"))
    as_csv = file_format == "csv" or (file_format is None and path.lower().endswith(".csv"))
    with job_files.opened(path) as source, open_to_change(configuration, "adder") as client:
        return import_jobs.add_from(
            client, source, as_csv=as_csv, defaults=defaults, skip=on_error == "skip", as_json=as_json
        )


def _answer(job: Job, *, untouched: bool, as_json: bool) -> None:
    record = {key: value for key, value in job_record(job).items() if key != "state"}
    what = "Left as it is:" if untouched else "Added" if job.revision == 0 else "Brought up to date:"
    output.answer(f"{what} job {job.id} ({job.task})", plain=str(job.id), record=record, as_json=as_json)
