"""Give database roles the rights that they need on a queue, and take them back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, Final

from psycopg import errors as pg

from gw_core.domain.errors import InvalidInputError, PermissionDeniedError
from gw_core.domain.rules.roles import InstalledRights, Policy, QueueObject, RoleKind, policy_name
from gw_core.domain.rules.session_limits import milliseconds
from gw_core.domain.safe_text import printable_identifier
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.row_security import visible_rows
from gw_core.postgres.schema.schema_state import check

LOCK_TIMEOUT: Final = timedelta(seconds=2)
"""The timeout for a table's lock, which a policy needs: workers wait behind it."""

MAX_TRIES: Final = 30
PAUSE_SECONDS: Final = 1.0
"""How often a statement that could not lock its table is tried, and the pause between two tries."""

_RACES: Final = (pg.DuplicateObject, pg.UndefinedObject, pg.InternalError_, pg.LockNotAvailable, pg.DeadlockDetected)
"""Errors that end with another look: another program changed the same rights, or uses the table."""

Find = Callable[[InstalledRights], Iterable[str]]
"""Finds the statements that are still to run."""


def check_role(connection: Connection, schema: str, role: str) -> None:
    """Raise `InvalidInputError` for a role that does not exist, or that has all rights."""
    check(connection, schema).raise_unless_usable()
    [(exists, owner, has_all, _)] = visible_rows(connection, schema, "grant_owner", {"schema": schema, "role": role})
    if not exists:
        raise InvalidInputError(
            f"there is no role {role!r}; create it first: create role {printable_identifier(role)} login"
        )
    if has_all:
        why = "owns the queue" if role == owner else f"is a superuser or a member of the queue's owner {owner!r}"
        raise InvalidInputError(f"role {role!r} {why}, so it has all rights")


def installed_rights(connection: Connection, schema: str) -> InstalledRights:
    """Read the rights that roles have in a schema."""
    objects: dict[tuple[Any, ...], set[tuple[str, str]]] = {}
    for *each, role, privilege in visible_rows(connection, schema, "grant_objects", {"schema": schema}):
        granted = objects.setdefault(tuple(each), set())
        if role is not None:
            granted.add((role, privilege))
    values = {"schema": schema, "policies": [policy_name(kind) for kind in RoleKind]}
    found = visible_rows(connection, schema, "grant_policies", values)
    policies = [Policy(table, RoleKind(kind), command, tuple(roles)) for table, kind, command, roles in found]
    known = [
        QueueObject(kind, name, belongs_to, has_row_security, frozenset(granted))
        for (kind, name, belongs_to, has_row_security), granted in objects.items()
    ]
    return InstalledRights(schema, known, policies)


def missing_grants(connection: Connection, schema: str, *, is_behind: bool) -> tuple[str, ...]:
    """Return the statements that give the roles that were granted what they lack, when all migrations have run."""
    with translated(schema):
        rights = installed_rights(connection, schema)
    return tuple((rights.when_migrated() if is_behind else rights).missing_of_all())


def repeat_grants(connection: Connection, schema: str) -> Sequence[str]:
    """Give the roles that were granted what they lack, for example on new tables, and return the statements."""
    with translated(schema):
        return run_found(connection, schema, InstalledRights.missing_of_all)


def run_found(connection: Connection, schema: str, find: Find) -> Sequence[str]:
    """Run the statements that `find` finds, each in a transaction of its own, and return them.

    A policy locks its table against everyone. One at a time, and a short wait for each, lets workers go on in between.
    """
    done: list[str] = []
    for tries in range(MAX_TRIES):
        found = list(find(installed_rights(connection, schema)))
        if not found:
            return done
        require_ownership(connection, schema)
        try:
            for statement in found:
                _run(connection, statement)
                done.append(statement)
            return done
        except _RACES:
            if tries + 1 == MAX_TRIES:
                raise
            time.sleep(PAUSE_SECONDS)
    return done


def _run(connection: Connection, statement: str) -> None:
    with connection.transaction():
        connection.execute("select set_config('lock_timeout', %s, true)", (milliseconds(LOCK_TIMEOUT),))
        connection.execute(statement.encode())


def require_ownership(connection: Connection, schema: str) -> None:
    """Raise `PermissionDeniedError` unless this session has the rights of the queue's owner."""
    [(_, owner, _, is_ours)] = visible_rows(connection, schema, "grant_owner", {"schema": schema, "role": None})
    if not is_ours:
        raise PermissionDeniedError(
            f"the database role lacks a right: only {owner!r}, the owner of the queue in schema {schema!r}, may change "
            "the rights of roles; connect as that role, or have it run what --sql prints"
        )
