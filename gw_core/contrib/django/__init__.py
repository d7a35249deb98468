"""Django: a backend for its tasks, `manage.py gw`, a migration and an admin page.

Add `gw_core.contrib.django` to `INSTALLED_APPS` and name the backend in `TASKS`:
`{"default": {"BACKEND": "gw_core.contrib.django.GraphileWorkerBackend"}}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gw_core.contrib.django.backend import GraphileWorkerBackend

__all__ = ["GraphileWorkerBackend"]


def __getattr__(name: str) -> Any:
    """Import the backend on first use; as an app, this package is imported before `django.tasks` can be."""
    if name != "GraphileWorkerBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gw_core.contrib.django.backend import GraphileWorkerBackend

    return GraphileWorkerBackend
