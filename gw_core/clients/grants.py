"""Give database roles the rights that they need on a queue, and take them back."""

from __future__ import annotations

from collections.abc import Sequence

from gw_core.clients.verbs import Part, R, blocking
from gw_core.domain.job.job import named
from gw_core.domain.rules.roles import Grant, RoleKind
from gw_core.postgres.schema.grants import check_role, installed_rights, require_ownership, run_found


class Grants(Part[R]):
    """The roles that may use a queue; `client.grants` is one. Only the owner of the queue may change them."""

    @blocking
    def list(self) -> Sequence[Grant]:
        """Return the roles that were granted, with what each lacks."""
        with self._connection() as connection:
            return installed_rights(connection, self._schema).granted()

    @blocking
    def grant(self, kind: RoleKind | str, role: str) -> Sequence[str]:
        """Give a role the rights of a kind, and return the statements that this took. `migrate` repeats it.

        A role can have several kinds. Raises `InvalidInputError` for a role that does not exist, or owns the queue.
        """
        wanted = named(RoleKind, kind, "a kind of role")
        with self._connection() as connection:
            check_role(connection, self._schema, role)
            return run_found(connection, self._schema, lambda rights: rights.missing(role, wanted))

    @blocking
    def statements(self, kind: RoleKind | str, role: str) -> Sequence[str]:
        """Return the statements that `grant` would run, and change nothing."""
        wanted = named(RoleKind, kind, "a kind of role")
        with self._connection() as connection:
            check_role(connection, self._schema, role)
            return [*installed_rights(connection, self._schema).missing(role, wanted)]

    @blocking
    def revoke(self, role: str) -> Sequence[str]:
        """Take all rights on the queue back from a role, and return the statements that this took."""
        with self._connection() as connection:
            check_role(connection, self._schema, role)
            require_ownership(connection, self._schema)
            return run_found(connection, self._schema, lambda rights: rights.revoking(role))

    @blocking
    def revoke_statements(self, role: str) -> Sequence[str]:
        """Return the statements that `revoke` would run, and change nothing."""
        with self._connection() as connection:
            check_role(connection, self._schema, role)
            return [*installed_rights(connection, self._schema).revoking(role)]
