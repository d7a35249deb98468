"""Give database roles the rights that they need on a queue, and take them back."""

from __future__ import annotations

from collections.abc import Sequence

from gw_core.clients.verbs import Part, R, blocking
from gw_core.domain.rules.roles import Grant, RoleKind
from gw_core.postgres.schema.grants import RoleGrants


class Grants(Part[R]):
    """The roles that may use a queue; `client.grants` is one. Only the owner of the queue may change them."""

    @blocking
    def list(self) -> Sequence[Grant]:
        """Return the roles that were granted, with what each lacks."""
        return self._grants.list()

    @blocking
    def grant(self, kind: RoleKind | str, role: str) -> Sequence[str]:
        """Give a role the rights of a kind, and return the statements that this took. `migrate` repeats it.

        A role can have several kinds. Raises `InvalidInputError` for a role that does not exist, or owns the queue.
        """
        return self._grants.grant(kind, role)

    @blocking
    def statements(self, kind: RoleKind | str, role: str) -> Sequence[str]:
        """Return the statements that `grant` would run, and change nothing."""
        return self._grants.statements(kind, role)

    @blocking
    def revoke(self, role: str) -> Sequence[str]:
        """Take all rights on the queue back from a role, and return the statements that this took."""
        return self._grants.revoke(role)

    @blocking
    def revoke_statements(self, role: str) -> Sequence[str]:
        """Return the statements that `revoke` would run, and change nothing."""
        return self._grants.revoke_statements(role)

    @property
    def _grants(self) -> RoleGrants:
        return RoleGrants(self._connections, self._schema)
