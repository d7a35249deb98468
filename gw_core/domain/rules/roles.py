"""What `gw grant` gives a database role: each kind of role, and its rights on the tables and functions of the queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from gw_core.domain.safe_text import printable_identifier


class RoleKind(StrEnum):
    """What a database role is for."""

    WORKER = "worker"
    """Runs jobs: `gw run`."""
    ADDER = "adder"
    """Adds jobs: a web application."""
    VIEWER = "viewer"
    """Reads everything, payloads included."""
    OPERATOR = "operator"
    """Reads and changes everything, without running jobs: commands and the console."""
    READER = "reader"
    """Reads the view `jobs`, which has no payloads."""


Rights = Mapping[str, tuple[str, ...]]
"""Privileges by the name of a table, view or function."""

RECORD: Final = "_private_gw_migrations"
"""gw's ledger, which every schema has. Its policies `gw_worker`, `gw_viewer`, … record which roles were granted."""

LEDGERS: Final = ("migrations", RECORD)
"""Every role may read which steps the schema has."""

OF_RUST: Final = "_private_workers"
FUNCTIONS_OF_RUST: Final = ("worker_heartbeat", "worker_deregister")
"""The table and the functions of graphile_worker_rs, if it uses the schema."""

RETIRED_OF_RUST: Final = "_private_job_retirements"
"""Its list of retired jobs. Adding, removing and rescheduling jobs writes to it."""

TABLES: Final = (
    *LEDGERS,
    "_private_jobs",
    "_private_job_queues",
    "_private_tasks",
    "_private_known_crontabs",
    "_private_gw_workers",
    "_private_gw_cancellations",
    "_private_gw_renewed_locks",
    "_private_gw_claim_rules",
    "_private_gw_pauses",
    "_private_gw_limits",
    "_private_gw_buckets",
    "_private_gw_statistics",
    "_private_gw_history",
    "_private_gw_history_default",
    "_private_gw_waiting",
    "_private_gw_edges",
    "_private_gw_steps",
    "_private_gw_unique",
    "_private_gw_expiring",
    "_private_gw_actions",
    OF_RUST,
)
"""All tables that roles read by name."""

WITH_IDS: Final = ("_private_jobs", "_private_job_queues", "_private_tasks")
"""Tables whose sequences are read."""

FUNCTIONS_TO_ADD: Final = (
    "add_job",
    "add_jobs",
    "_private_gw_add_waiting",
    "_private_gw_add_unique",
    "_private_gw_end_members",
)
FUNCTIONS_TO_READ: Final = ("_private_gw_field_value",)
FUNCTIONS_TO_CHANGE: Final = (
    *FUNCTIONS_TO_ADD,
    *FUNCTIONS_TO_READ,
    *("complete_jobs", "permanently_fail_jobs", "reschedule_jobs", "remove_job", "force_unlock_workers"),
    *("_private_gw_expire_history", *FUNCTIONS_OF_RUST),
)


_EXECUTE: Final = ("execute",)
_READ: Final = ("select",)
_ADD: Final = ("select", "insert")
_CHANGE: Final = ("select", "insert", "update", "delete")


def _read(tables: Iterable[str], functions: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    return {**dict.fromkeys(tables, _READ), **dict.fromkeys(functions, _EXECUTE)}


RIGHTS: Final[Mapping[RoleKind, Rights]] = {
    RoleKind.WORKER: {
        **_read((*TABLES, "jobs"), (*FUNCTIONS_TO_CHANGE, "_private_gw_make_history_partition")),
        "_private_jobs": _CHANGE,
        "_private_job_queues": ("select", "insert", "update"),
        "_private_tasks": _ADD,
        "_private_known_crontabs": ("select", "insert", "update"),
        "_private_gw_workers": _CHANGE,
        "_private_gw_cancellations": ("select", "delete"),
        "_private_gw_renewed_locks": _CHANGE,
        "_private_gw_claim_rules": ("select", "insert", "update"),
        # Locking a row takes the right to update it.
        "_private_gw_pauses": ("select", "update", "delete"),
        "_private_gw_limits": ("select", "update"),
        "_private_gw_buckets": _CHANGE,
        "_private_gw_statistics": _CHANGE,
        "_private_gw_history": _ADD,
        "_private_gw_waiting": _CHANGE,
        "_private_gw_edges": ("select", "insert", "delete"),
        "_private_gw_steps": _CHANGE,
        "_private_gw_unique": _CHANGE,
        "_private_gw_expiring": _CHANGE,
        # Tasks can act on jobs; expired records are deleted.
        "_private_gw_actions": ("select", "insert", "delete"),
        OF_RUST: _CHANGE,
        RETIRED_OF_RUST: ("select", "insert", "delete"),
    },
    RoleKind.ADDER: {
        **_read(LEDGERS, FUNCTIONS_TO_ADD),
        # A key replaces a waiting job, and PostgreSQL checks the right for every add.
        "_private_jobs": ("select", "insert", "update"),
        "_private_job_queues": _ADD,
        "_private_tasks": _ADD,
        "_private_gw_waiting": ("select", "insert", "update"),
        "_private_gw_unique": ("select", "insert", "update"),
        "_private_gw_expiring": ("select", "insert", "update"),
        "_private_gw_edges": ("select", "insert", "delete"),
        RETIRED_OF_RUST: ("insert",),
    },
    RoleKind.VIEWER: _read((*TABLES, "jobs"), FUNCTIONS_TO_READ),
    RoleKind.OPERATOR: {
        **_read((*TABLES, "jobs"), FUNCTIONS_TO_CHANGE),
        "_private_jobs": _CHANGE,
        "_private_job_queues": _CHANGE,
        "_private_tasks": ("select", "insert", "delete"),
        "_private_known_crontabs": ("select", "delete"),
        "_private_gw_workers": ("select", "update", "delete"),
        "_private_gw_cancellations": _CHANGE,
        "_private_gw_claim_rules": ("select", "insert", "update"),
        "_private_gw_pauses": _CHANGE,
        "_private_gw_limits": _CHANGE,
        "_private_gw_buckets": _CHANGE,
        # What a command removes is recorded.
        "_private_gw_history": _ADD,
        "_private_gw_waiting": _CHANGE,
        "_private_gw_unique": _CHANGE,
        "_private_gw_expiring": ("select", "insert", "update"),
        "_private_gw_edges": ("select", "insert", "delete"),
        "_private_gw_actions": ("select", "insert", "delete"),
        OF_RUST: _CHANGE,
        RETIRED_OF_RUST: ("select", "insert", "delete"),
    },
    RoleKind.READER: _read((*LEDGERS, "jobs")),
}


# -- what a schema has ---------------------------------------------------------------------------------------------


class QueueObject(msgspec.Struct, frozen=True):
    """The schema, or a table, sequence or function in it, with the rights that roles have on it."""

    kind: str
    name: str
    belongs_to: str | None = None
    """The table of a sequence; the arguments of a function."""
    has_row_security: bool = False
    granted: frozenset[tuple[str, str]] = frozenset()
    """Role and privilege."""

    def sql(self, schema: str) -> str:
        """Return the object as `grant` and `revoke` name it."""
        if self.kind == "schema":
            return f"schema {printable_identifier(schema)}"
        arguments = f"({self.belongs_to})" if self.kind == "function" and self.belongs_to is not None else ""
        return f"{self.kind} {printable_identifier(schema)}.{printable_identifier(self.name)}{arguments}"


class Policy(msgspec.Struct, frozen=True):
    """A policy that `gw grant` made: it shows a table's rows to all roles of one kind."""

    table: str
    kind: RoleKind
    command: str
    """`r` for reading, `*` for everything."""
    roles: tuple[str, ...]


class InstalledRights(msgspec.Struct, frozen=True):
    """The rights that roles have in one schema."""

    schema: str
    objects: Sequence[QueueObject]
    policies: Sequence[Policy]

    def granted(self) -> list[Grant]:
        """Return each role with its kinds, as the policies of gw's ledger record them."""
        roles = [(role, kind) for kind in RoleKind for role in self._recorded(kind)]
        return [Grant(role, kind, tuple(self.missing(role, kind))) for role, kind in sorted(roles)]

    def missing_of_all(self) -> list[str]:
        """Return the statements that give all recorded roles what they lack."""
        return list(dict.fromkeys(statement for each in self.granted() for statement in each.missing))

    def when_migrated(self) -> InstalledRights:
        """Return the same with the tables and functions that migrations will add."""
        names = {each.name for each in self.objects}
        tables = (each for each in TABLES if each not in names and each != OF_RUST)
        functions = {each for rights in RIGHTS.values() for each, granted in rights.items() if granted == _EXECUTE}
        return InstalledRights(
            self.schema,
            [
                *self.objects,
                *(QueueObject("table", each, has_row_security=True) for each in tables),
                *(QueueObject("function", each) for each in sorted(functions - names) if each not in FUNCTIONS_OF_RUST),
            ],
            self.policies,
        )

    def missing(self, role: str, kind: RoleKind) -> Iterator[str]:
        """Yield the statements that give a role what it lacks; whatever is missing after the first can be found again.

        Only the role's own rights count, and not those of PUBLIC or of roles that it is a member of.
        """
        policies = list(self._missing_policies(role, kind))
        yield from (statement for table, statement in policies if table == RECORD)
        for each in self.objects:
            wanted = _wanted(each, RIGHTS[kind])
            if lacking := [privilege for privilege in wanted if (role, privilege) not in each.granted]:
                yield f"grant {', '.join(lacking)} on {each.sql(self.schema)} to {printable_identifier(role)}"
        yield from (statement for table, statement in policies if table != RECORD)

    def _missing_policies(self, role: str, kind: RoleKind) -> Iterator[tuple[str, str]]:
        there = {each.table: each for each in self.policies if each.kind is kind}
        for each in self.objects:
            privileges = RIGHTS[kind].get(each.name, ()) if each.kind == "table" else ()
            if not privileges or not (each.has_row_security or each.name == RECORD):
                continue
            command, policy = "r" if privileges == _READ else "*", there.get(each.name)
            if policy is None or policy.command != command or role not in policy.roles:
                yield each.name, self._policy(each.name, kind, command, role, policy)

    def _policy(self, table: str, kind: RoleKind, command: str, role: str, policy: Policy | None) -> str:
        # All roles of the kind in one statement: several may lack the same policy.
        all_roles = {role, *self._recorded(kind), *(policy.roles if policy else ())}
        roles = ", ".join(map(printable_identifier, sorted(all_roles)))
        name = self._policy_name(kind, table)
        if policy is not None and policy.command == command:
            return f"alter {name} to {roles}"
        drop = "" if policy is None else f"drop {name}; "
        if command == "r":
            return f"{drop}create {name} for select to {roles} using (true)"
        return f"{drop}create {name} to {roles} using (true) with check (true)"

    def _policy_name(self, kind: RoleKind, table: str) -> str:
        return f"policy {policy_name(kind)} on {printable_identifier(self.schema)}.{printable_identifier(table)}"

    def _recorded(self, kind: RoleKind) -> Sequence[str]:
        return [role for each in self.policies if each.table == RECORD and each.kind is kind for role in each.roles]

    def revoking(self, role: str) -> Iterator[str]:
        """Yield the statements that take all rights back from a role; the record of the grant goes last."""
        for each in self.objects:
            if any(granted == role for granted, _ in each.granted):
                yield f"revoke all on {each.sql(self.schema)} from {printable_identifier(role)}"
        for policy in sorted(self.policies, key=lambda each: each.table == RECORD):
            if role in policy.roles:
                yield self._without(policy, role)

    def _without(self, policy: Policy, role: str) -> str:
        name = self._policy_name(policy.kind, policy.table)
        others = ", ".join(printable_identifier(each) for each in policy.roles if each != role)
        return f"alter {name} to {others}" if others else f"drop {name}"


class Grant(msgspec.Struct, frozen=True):
    """A role as `gw grant` made it; `missing` are the statements that give it what it lacks.

    Example: docs/api/parts.md
    """

    role: str
    kind: RoleKind
    missing: tuple[str, ...] = ()


def rights_of(kind: RoleKind) -> Iterator[tuple[str, str]]:
    """Yield each table or function with each privilege on it that roles of a kind need."""
    for name, privileges in RIGHTS[kind].items():
        for privilege in privileges:
            yield name, privilege


def policy_name(kind: RoleKind) -> str:
    """Return the name of the policies of a kind of role."""
    return f"gw_{kind}"


def _wanted(each: QueueObject, rights: Rights) -> tuple[str, ...]:
    match each.kind:
        case "schema":
            return ("usage",)
        case "sequence":  # the last id shows whether a job was ever added, and how many numbers are left
            return _READ if each.belongs_to in WITH_IDS and each.belongs_to in rights else ()
        case _:
            wanted = rights.get(each.name, ())
            return wanted if (each.kind == "function") == (wanted == _EXECUTE) else ()
