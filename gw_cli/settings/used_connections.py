"""Record which connections of configuration files commands have used, so that completion connects only to those."""

from __future__ import annotations

import os
from pathlib import Path

from gw_cli.settings.resolve import Configuration
from gw_cli.settings.table import CONNECTION
from gw_core.runtime.files import write_new


def remember_use(configuration: Configuration) -> None:
    """Record that a command uses the connection that the file names, so that completion can connect to it too."""
    mark = _mark(configuration)
    if mark is not None and not mark.exists():
        try:
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new(mark, "")
        except OSError:
            return  # completion offers less, but the command still works


def may_complete(configuration: Configuration) -> bool:
    """Return whether completion may connect: no file names the connection, or a command has used it.

    A new clone belongs to its user, whatever it contains, so the Tab key must not connect to what its file names.
    """
    mark = _mark(configuration)
    return mark is None or mark.exists()


def state_folder() -> Path:
    """Return the folder of what commands remember between runs on this machine."""
    return Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "gw")


def _mark(configuration: Configuration) -> Path | None:
    if configuration.origin(CONNECTION).kind != "file":
        return None
    import hashlib

    named = repr((str(configuration.file), configuration[CONNECTION]))
    return Path(state_folder(), "used", hashlib.sha256(named.encode(errors="surrogateescape")).hexdigest()[:32])
