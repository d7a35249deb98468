"""`gw migrate`: install the schema, or bring it up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gw_cli import output, stderr
from gw_cli.command import Json, command
from gw_cli.connect import open_client
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration, table
from gw_cli.sharding import for_each_shard
from gw_core.errors import InvalidInputError
from gw_core.front_ends import counted

if TYPE_CHECKING:
    from gw_core.operations import MigrationPlan, MigrationReport

STEPS = output.Shape(
    (
        output.Column("name", "STEP", shrinks=True),
        output.Column("origin", "ORIGIN"),
        output.Column("number", "NUMBER", right=True),
        output.Column("breaking", "BREAKING"),
        output.Column("reapplied"),
    )
)


@command("migrate")
@for_each_shard("sql")
def migrate(
    configuration: Configuration,
    plan: Annotated[bool, typer.Option("--plan", help="Only list the steps that would run")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Only print the SQL that would run, for psql")] = False,
    as_json: Json = False,
) -> None:
    """Install or update the schema.

    Also gives the roles of gw grant their rights on new tables. Any number of processes can do this at the same time.
    """
    if sql and (plan or as_json):
        raise InvalidInputError("--sql prints a script and nothing else; give it without --plan and --json")
    with open_client(configuration) as client:
        if sql:
            output.script(client.migration_script())
        elif plan:
            _show_plan(client.migration_plan(), as_json=as_json)
        else:
            _show_report(client.migrate(), configuration[table.SCHEMA], as_json=as_json)


def _show_plan(plan: MigrationPlan, *, as_json: bool) -> None:
    if as_json:
        record = {
            "revision": plan.state.revision,
            "steps": STEPS.records(plan.steps),
            "grants": plan.grants,
            "warnings": plan.warnings,
        }
        output.record(record)
    else:
        output.records(plan.steps, STEPS, as_json=False)
        if plan.grants:
            stderr.note(f"Roles of gw grant would get what they lack, in {counted(len(plan.grants), 'statement')}.")
        elif not plan.steps:
            stderr.note("Nothing to do: the schema is up to date.")
    _warn(plan.warnings)


def _show_report(report: MigrationReport, schema: str, *, as_json: bool) -> None:
    revision, count = report.after.revision, len(report.applied)
    record = {
        "revision": revision,
        "applied": STEPS.records(report.applied),
        "grants": report.grants,
        "warnings": report.warnings,
    }
    done = f"was migrated in {counted(count, 'step')}" if count else "was up to date"
    message = f"Schema {quoted(schema)} {done}; it is at revision {revision}"
    output.answer(message, plain=str(revision), record=record, as_json=as_json)
    if report.grants:
        stderr.note(f"Roles of gw grant got what they lacked, in {counted(len(report.grants), 'statement')}.")
    _warn(report.warnings)


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        stderr.note(f"warning: {warning}")
