"""What the admin page shows; it has no table of its own."""

from __future__ import annotations

from django.db import models


class Job(models.Model):
    """Stands for the jobs of the queue in the admin and in its permissions; the admin reads them with gw's client."""

    class Meta:
        """Permissions: to view jobs, to retry and to cancel them."""

        managed = False
        default_permissions = ("view",)
        permissions = (("retry_job", "Can retry jobs"), ("cancel_job", "Can cancel jobs"))
