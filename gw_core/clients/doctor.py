"""Diagnose the queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from gw_core.clients.verbs import Part, R, blocking
from gw_core.domain.reports.diagnosis import Finding
from gw_core.domain.reports.lock_waits import LockWaits
from gw_core.domain.rules.roles import RoleKind
from gw_core.postgres.read.doctor import Examination


class Doctor(Part[R]):
    """Checks the whole queue and changes nothing; `client.doctor` is one."""

    @blocking
    def health_check(self) -> timedelta:
        """Run a cheap query on the jobs table and return how long it took.

        Raises what the database raises, and `ReadOnlyError` for a server that takes no writes: an error is the
        diagnosis.
        """
        return self._examination.health_check()

    @blocking
    def findings(self, kind: RoleKind | str | None = None) -> Sequence[Finding]:
        """Return a finding for each check; raises only if it cannot connect.

        `kind` is what the role is meant for: the rights of a `viewer` are judged by what a viewer needs. Without it,
        the kinds count that `gw grant` gave the role, else whether it may change jobs.
        """
        return self._examination.findings(kind)

    @blocking
    def lock_waits(self) -> LockWaits:
        """Return which sessions block others in this database, and the longest open transactions."""
        return self._examination.lock_waits()

    @property
    def _examination(self) -> Examination:
        return Examination(self._connections, self._schema)
