"""Which folder an `embedded:` connection string means, and the connection string its server answers to."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from gw_core.domain.errors import EmbeddedError

EMBEDDED_PREFIX = "embedded:"
"""What the connection string of an embedded server begins with."""
DEFAULT_FOLDER = Path(".gw", "postgres")
ROLE = "postgres"
PORT = 5432


def folder_of(connection: str) -> Path:
    """The absolute folder a connection string names; `embedded:` alone means `.gw/postgres` under the current one."""
    if not connection.startswith(EMBEDDED_PREFIX):
        raise EmbeddedError("not an embedded connection string; write embedded: or embedded:///path")
    text = connection.removeprefix(EMBEDDED_PREFIX)
    if text.startswith("//"):
        text = text.removeprefix("//")
        if text and not text.startswith("/"):
            # The string is not repeated: if it was meant as a URL, it may contain a password.
            raise EmbeddedError(
                "this embedded: connection string names a host, but an embedded server has no host;"
                " write embedded:FOLDER for a folder below this one or embedded:///FOLDER for one below the root"
            )
    if "\0" in text:
        raise EmbeddedError(f"{connection!r} holds a NUL character, which no path may have; remove it")
    # Paths are taken as they stand, without percent-decoding: a folder's name may hold any character, `%` included.
    folder = Path(text).expanduser() if text else DEFAULT_FOLDER
    return Path(os.path.abspath(folder))


def conninfo_for(socket_folder: Path) -> str:
    """The URL under which libpq and every other client reaches the server that listens in this folder."""
    host = quote(os.fsencode(socket_folder), safe="")
    # Explicit, or the caller's PGPORT and PGHOSTADDR would point to another server.
    return f"postgresql://{ROLE}@/postgres?host={host}&port={PORT}&hostaddr="
