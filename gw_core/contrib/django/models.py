"""The jobs, their ended attempts and their schedules, as models: for the admin, permissions and queries.

They are not managed: the queue has its own tables. Programs change jobs with `gw_core.contrib.django.client`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.db.models.sql import Query
from django.db.models.sql.datastructures import BaseTable
from django.utils import timezone

from gw_core import JobState
from gw_core.contrib.django.discovery import queue_of


class Infinity(models.Func):
    """The time at which a job runs that waits for others."""

    template = "'infinity'::timestamptz"
    output_field = models.DateTimeField()


def _states() -> Mapping[str, Q]:
    """Return the condition of each state."""
    idle, has_attempts = Q(locked_at=None), Q(attempts__lt=F("max_attempts"))
    failed_before = Q(attempts__gt=0, last_error__isnull=False)
    later = idle & has_attempts & Q(run_at__gt=Now(), run_at__lt=Infinity())
    return {
        JobState.READY: idle & has_attempts & Q(run_at__lte=Now()),
        JobState.WAITING: idle & has_attempts & Q(run_at=Infinity()),
        JobState.SCHEDULED: later & ~failed_before,
        JobState.BACKOFF: later & failed_before,
        JobState.RUNNING: Q(locked_at__isnull=False),
        JobState.FAILED: idle & Q(attempts__gte=F("max_attempts")),
    }


STATES: Final = _states()


class QueueQuery(Query):
    """A query of a table in the schema of one queue."""

    schema = ""

    def base_table_class(self, table_name: str, alias: str | None) -> BaseTable:
        """Return the table, as Django asks for the first table of a query."""
        return BaseTable(f'"{self.schema}"."{self.model.queue_table}"', alias)


class QueueQuerySet(models.QuerySet):
    """Rows of one queue."""

    def in_state(self, state: JobState | str) -> Any:
        """Return the jobs in one state: ready, scheduled, waiting, backoff, running or failed.

        An index has the failed jobs in the order of `run_at`, and the running ones in the order of `locked_at`.
        """
        return self.filter(STATES[JobState(state)])


class QueueManager(models.Manager):
    """Finds the rows of the queue of a backend."""

    def in_state(self, state: JobState | str) -> Any:
        """Return the jobs in one state, as `QueueQuerySet.in_state` does."""
        return self.get_queryset().in_state(state)

    def get_queryset(self) -> Any:
        """Return the rows of the first queue: the one of the backend `default`, if that is one of gw."""
        return self.of_backend()

    def of_backend(self, alias: str | None = None) -> Any:
        """Return the rows of the queue of a backend in `TASKS`."""
        return self.of_queue(*queue_of(alias))

    def of_queue(self, database: str, schema: str) -> Any:
        """Return the rows of a queue by its database alias and schema."""
        query = QueueQuery(self.model)
        query.schema = schema.replace('"', '""')
        return QueueQuerySet(self.model, query=query, using=database)


class AttemptManager(QueueManager):
    """Finds attempts that have not expired."""

    def of_queue(self, database: str, schema: str) -> Any:
        """Return the attempts of a queue."""
        return super().of_queue(database, schema).filter(expires_at__gt=Now())


class NoRows(models.Manager):
    """Finds nothing: programs such as `dumpdata` read the default manager of every model."""

    def get_queryset(self) -> models.QuerySet:
        """Return an empty query, which does not reach the database."""
        return super().get_queryset().none()


class JsonColumn(models.JSONField):
    """A column of the type `json`, which the driver decodes; those of Django have the type `jsonb`."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value as it is."""
        return value

    def deconstruct(self) -> Any:
        """Be a `JSONField` in migrations."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.JSONField", arguments, options


class RunAt(models.DateTimeField):
    """A time within Python's calendar; None for infinity."""

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        """Return the column as drivers can read it."""
        known = f"least(greatest({sql}, '0001-01-03 00:00Z'), '9999-12-29 00:00Z')"
        return f"case when {sql} < 'infinity' then {known} end", (*params, *params)

    def deconstruct(self) -> Any:
        """Be a `DateTimeField` in migrations."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.DateTimeField", arguments, options


class QueueModel(models.Model):
    """A table or view of the queue."""

    no_rows = NoRows()
    objects = QueueManager()

    queue_table = ""
    """Its name in the schema of the queue; a `db_table` could be that of a model of the project."""

    class Meta:
        """Not managed, and left out of `dumpdata`, also with `--all`."""

        abstract = True
        managed = False
        default_manager_name = base_manager_name = "no_rows"
        default_permissions = ("view",)


class Job(QueueModel):
    """A job in the queue. Its payload is not in the view; `client().jobs.get(id)` reads it."""

    queue_table = "jobs"

    id = models.BigIntegerField(primary_key=True)
    task = models.TextField(db_column="task_identifier")
    queue_name = models.TextField("queue", null=True)
    priority = models.SmallIntegerField()
    run_at = RunAt()
    attempts = models.SmallIntegerField()
    max_attempts = models.SmallIntegerField()
    last_error = models.TextField(null=True)
    created_at = models.DateTimeField("added")
    updated_at = models.DateTimeField()
    key = models.TextField(null=True)
    locked_at = models.DateTimeField(null=True)
    locked_by = models.TextField("worker", null=True)
    revision = models.IntegerField()
    flags = models.JSONField(null=True)

    class Meta(QueueModel.Meta):
        """Permissions: to view jobs, and one for each action."""

        abstract = False
        permissions = (
            ("retry_job", "Can retry jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("complete_job", "Can complete jobs"),
            ("reschedule_job", "Can reschedule jobs"),
            ("pause_job", "Can pause and resume tasks"),
        )

    def __str__(self) -> str:
        return f"{self.task} {self.pk}"

    @property
    def state(self) -> str:
        """The state of the job: ready, scheduled, waiting, backoff, running or failed."""
        if self.locked_at is not None:
            return JobState.RUNNING.value
        if self.attempts >= self.max_attempts:
            return JobState.FAILED.value
        run_at: datetime | None = self.run_at
        if run_at is None:
            return JobState.WAITING.value
        if run_at <= timezone.now():
            return JobState.READY.value
        return (JobState.BACKOFF if self.attempts and self.last_error is not None else JobState.SCHEDULED).value


class Attempt(QueueModel):
    """An attempt of a job that has ended, where history is kept: by `KEEP_RESULTS`, for example.

    Several attempts may belong to one job, so filter by `job_id` instead of `pk`.
    """

    queue_table = "_private_gw_history"

    job_id = models.BigIntegerField("job", primary_key=True)
    attempt = models.IntegerField()
    max_attempts = models.IntegerField()
    task = models.TextField()
    queue_name = models.TextField("queue", null=True)
    key = models.TextField(null=True)
    state = models.TextField()
    final = models.BooleanField()
    result = JsonColumn(null=True)
    error = models.TextField(null=True)
    error_type = models.TextField(null=True)
    traceback = models.TextField(null=True)
    worker_id = models.TextField("worker", null=True)
    payload = JsonColumn(null=True)
    created_at = models.DateTimeField("added")
    started_at = models.DateTimeField("started", null=True)
    finished_at = models.DateTimeField("finished")
    expires_at = models.DateTimeField()

    objects = AttemptManager()

    class Meta(QueueModel.Meta):
        """The table of history."""

        abstract = False

    def __str__(self) -> str:
        return f"{self.task} {self.job_id}, attempt {self.attempt}"


class Schedule(QueueModel):
    """A recurring task that workers have registered."""

    queue_table = "_private_known_crontabs"

    identifier = models.TextField(primary_key=True)
    known_since = models.DateTimeField()
    last_execution = models.DateTimeField("last run", null=True)

    class Meta(QueueModel.Meta):
        """Permissions: to view schedules, and to run their tasks now."""

        abstract = False
        permissions = (("run_schedule", "Can run scheduled tasks now"),)

    def __str__(self) -> str:
        return str(self.identifier)
