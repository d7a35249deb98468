"""`manage.py flush`: delete the jobs with all other data."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import flush

from gw_core.contrib.django.upgrade import delete_jobs


class Command(flush.Command):
    """Django's command, which `TransactionTestCase` calls after each test.

    It sends no `post_migrate` if a router keeps all tables elsewhere, or for `serialized_rollback`.
    """

    def handle(self, **options: Any) -> None:
        """Delete all data and all jobs; a person who was asked may have cancelled it."""
        super().handle(**options)
        if not options["interactive"]:
            delete_jobs(options["database"])
