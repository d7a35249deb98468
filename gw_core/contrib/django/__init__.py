"""Django: a backend for its tasks, `manage.py gw`, a migration and an admin page.

Add `gw_core.contrib.django` to `INSTALLED_APPS` and name the backend in `TASKS`:
`{"default": {"BACKEND": "gw_core.contrib.django.GraphileWorkerBackend"}}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

# Imported on first use: as an app, this package is imported before `django.tasks` can be.
if TYPE_CHECKING:
    from gw_core.contrib.django.backend import GraphileWorkerBackend as GraphileWorkerBackend
    from gw_core.contrib.django.queue import client as client, enqueue_many as enqueue_many, job_spec as job_spec
    from gw_core.contrib.django.task import options as options, using as using
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.contrib.django.backend: GraphileWorkerBackend
        gw_core.contrib.django.queue: client enqueue_many job_spec
        gw_core.contrib.django.task: options using
        """,
    )
