"""Install the schema of the queue, or bring it to the installed version of gw."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

from gw_core.contrib.django.connection import open_client
from gw_core.contrib.django.discovery import queues


def install(apps: Any, schema_editor: Any) -> None:
    """Install the schemas that belong to this database, each step in a transaction of its own."""
    alias = schema_editor.connection.alias
    for database, schema in queues():
        if database == alias:
            with open_client(alias, schema) as client:
                client.migrate()


NOT_MANAGED = {
    "abstract": False,
    "managed": False,
    "base_manager_name": "no_rows",
    "default_manager_name": "no_rows",
    "default_permissions": ("view",),
}


class Migration(migrations.Migration):
    """Depend on this migration where one of yours adds jobs or creates triggers that do."""

    atomic = False
    initial = True

    operations = (
        migrations.RunPython(install, migrations.RunPython.noop),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("task", models.TextField(db_column="task_identifier")),
                ("queue_name", models.TextField(null=True, verbose_name="queue")),
                ("priority", models.SmallIntegerField()),
                ("run_at", models.DateTimeField()),
                ("attempts", models.SmallIntegerField()),
                ("max_attempts", models.SmallIntegerField()),
                ("last_error", models.TextField(null=True)),
                ("created_at", models.DateTimeField(verbose_name="added")),
                ("updated_at", models.DateTimeField()),
                ("key", models.TextField(null=True)),
                ("locked_at", models.DateTimeField(null=True)),
                ("locked_by", models.TextField(null=True, verbose_name="worker")),
                ("revision", models.IntegerField()),
                ("flags", models.JSONField(null=True)),
            ],
            options={
                **NOT_MANAGED,
                "permissions": (
                    ("retry_job", "Can retry jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("complete_job", "Can complete jobs"),
                    ("reschedule_job", "Can reschedule jobs"),
                    ("pause_job", "Can pause and resume tasks"),
                ),
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("job_id", models.BigIntegerField(primary_key=True, serialize=False, verbose_name="job")),
                ("attempt", models.IntegerField()),
                ("max_attempts", models.IntegerField()),
                ("task", models.TextField()),
                ("queue_name", models.TextField(null=True, verbose_name="queue")),
                ("key", models.TextField(null=True)),
                ("state", models.TextField()),
                ("final", models.BooleanField()),
                ("result", models.JSONField(null=True)),
                ("error", models.TextField(null=True)),
                ("error_type", models.TextField(null=True)),
                ("traceback", models.TextField(null=True)),
                ("worker_id", models.TextField(null=True, verbose_name="worker")),
                ("payload", models.JSONField(null=True)),
                ("created_at", models.DateTimeField(verbose_name="added")),
                ("started_at", models.DateTimeField(null=True, verbose_name="started")),
                ("finished_at", models.DateTimeField(verbose_name="finished")),
                ("expires_at", models.DateTimeField()),
            ],
            options=NOT_MANAGED,
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("identifier", models.TextField(primary_key=True, serialize=False)),
                ("known_since", models.DateTimeField()),
                ("last_execution", models.DateTimeField(null=True, verbose_name="last run")),
            ],
            options={
                **NOT_MANAGED,
                "permissions": (("run_schedule", "Can run scheduled tasks now"),),
            },
        ),
    )
