"""Name who uses this program, for records of what was changed."""

from __future__ import annotations

import getpass
import os
import socket


def operator_name() -> str:
    """Return the user and the machine of this process, as `user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
