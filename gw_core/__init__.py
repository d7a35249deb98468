"""Graphile Worker for Python: the public names, nothing else.

Names are resolved when first used, so that `import gw_core` costs nothing a program does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gw_core.version import __version__

if TYPE_CHECKING:
    from gw_core.domain.errors import GraphileWorkerError as GraphileWorkerError

_HOMES = {
    "gw_core.domain.errors": (
        "AuthenticationError",
        "CrontabError",
        "DatabaseError",
        "DatabaseUnavailableError",
        "EmbeddedError",
        "GraphileWorkerError",
        "InvalidInputError",
        "InvalidJobError",
        "InvalidSettingError",
        "JobRefusedError",
        "LockedJobsError",
        "MigrationError",
        "NoConnectionError",
        "PermissionDeniedError",
        "SchemaMissingError",
        "SchemaTooNewError",
        "SchemaTooOldError",
        "ServerTooOldError",
        "TaskLoadError",
        "TransientDatabaseError",
    ),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]  # noqa: PLE0604 - names, computed


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'gw_core' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
