"""What the admin page shows; it has no table of its own."""

from __future__ import annotations

from django.db import models


class NoRows(models.Manager):
    """Finds nothing, for there is no table; programs such as `dumpdata` read every model."""

    def get_queryset(self) -> models.QuerySet:
        """Return an empty query, which does not reach the database."""
        return super().get_queryset().none()


class Job(models.Model):
    """Stands for the jobs of the queue in the admin and in its permissions; the admin reads them with gw's client."""

    # There is no `objects`, which would seem to list the jobs.
    no_rows = NoRows()

    class Meta:
        """Permissions: to view jobs, to retry and to cancel them."""

        managed = False
        base_manager_name = "no_rows"  # which `dumpdata --all` uses
        default_permissions = ("view",)
        permissions = (("retry_job", "Can retry jobs"), ("cancel_job", "Can cancel jobs"))
