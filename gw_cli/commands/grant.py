"""`gw grant`, `gw revoke` and `gw grants`: the rights of database roles on the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.command import Json, Printed, command
from gw_cli.connect import open_client
from gw_cli.exit_codes import NothingMatchedError
from gw_cli.output import Column, Shape
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration
from gw_cli.sharding import for_each_shard
from gw_core.errors import InvalidInputError
from gw_core.front_ends import counted

Role = Annotated[str, typer.Argument(metavar="ROLE", help="Database role, written as it is named, without quotes")]
Sql = Annotated[bool, typer.Option("--sql", help="Only print the SQL that would run, for psql")]

GRANTS: Final = Shape(
    (
        Column("role", "ROLE", shrinks=True),
        Column("kind", "KIND"),
        Column("missing"),
        Column("count", "MISSING", lambda grant: len(grant.missing), right=True, shown=True),
    )
)


@command("grant")
@for_each_shard("sql")
def grant(
    configuration: Configuration,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="worker, adder, viewer, operator or reader")],
    role: Role,
    sql: Sql = False,
    as_json: Json = False,
) -> None:
    """Give a database role the rights of a worker, viewer, ….

    Grants rights on the tables and functions, and makes the policies that row security needs. gw migrate repeats it for
    new tables. A role can have several kinds. Only the owner of the queue can run this.
    """
    with open_client(configuration) as client:
        if sql:
            _print_script(client.grants.statements(kind, role), as_json=as_json)
            return
        done = client.grants.grant(kind, role)
    what = f"took {counted(len(done), 'statement')}" if done else "it had them already"
    _answer(role, f"Role {quoted(role)} has the rights of kind {kind}; {what}", done, as_json=as_json, kind=kind)


@command("revoke")
@for_each_shard("sql")
def revoke(
    configuration: Configuration,
    role: Role,
    sql: Sql = False,
    as_json: Json = False,
) -> None:
    """Take all rights on the queue back from a database role.

    This includes rights that were granted without gw. Rights as a member of another role remain.
    """
    with open_client(configuration) as client:
        if sql:
            _print_script(client.grants.revoke_statements(role), as_json=as_json)
            return
        done = client.grants.revoke(role)
    if not done:
        raise NothingMatchedError(f"role {quoted(role)} has no rights of its own on the queue; gw grants lists roles")
    _answer(role, f"Role {quoted(role)} has no rights on the queue now", done, as_json=as_json)


@command("grants")
@for_each_shard()
def grants(configuration: Configuration, layout: Printed) -> None:
    """List the database roles that gw grant has given rights.

    MISSING counts the statements that a role lacks; gw migrate runs them.
    """
    with open_client(configuration) as client:
        found = client.grants.list()
    layout.show(found, GRANTS)
    if not found:
        stderr.note("No role was granted rights with gw grant.")


def _print_script(statements: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        raise InvalidInputError("--sql prints a script and nothing else; give it without --json")
    output.script("".join(f"{each};\n" for each in statements))


def _answer(role: str, message: str, statements: Sequence[str], *, as_json: bool, kind: str | None = None) -> None:
    record = {"role": role, **({} if kind is None else {"kind": kind}), "statements": list(statements)}
    output.answer(message, plain=role, record=record, as_json=as_json)
