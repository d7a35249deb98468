"""The variables by which `manage.py gw` selects what a worker runs."""

from __future__ import annotations

from typing import Final

APP: Final = "gw_core.contrib.django.worker:registry"
"""What `gw run --app` loads."""

BACKEND_VARIABLE: Final = "DJANGO_GW_BACKEND"
"""The environment variable with the alias of a backend."""

LANES_VARIABLE: Final = "DJANGO_GW_LANES"
"""The environment variable with the lanes to serve, separated by commas; without it a worker serves all."""
