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


class Migration(migrations.Migration):
    """Depend on this migration where one of yours adds jobs or creates triggers that do."""

    atomic = False
    initial = True

    operations = (
        migrations.RunPython(install, migrations.RunPython.noop),
        migrations.CreateModel(
            name="Job",
            fields=[("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="ID"))],
            options={
                "managed": False,
                "base_manager_name": "no_rows",
                "default_permissions": ("view",),
                "permissions": (("retry_job", "Can retry jobs"), ("cancel_job", "Can cancel jobs")),
            },
        ),
    )
