"""Use an embedded server as a process of its own: print where it is, then stay until asked to leave.

Needs nothing but the standard library and the path it is given, so that any interpreter and any user can run it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main(root: str, connection: str, pg_bin: str) -> None:
    sys.path.insert(0, root)
    from gw_core.embedded import start_or_attach
    from gw_core.errors import GraphileWorkerError

    began = time.monotonic()
    try:
        server = start_or_attach(connection, pg_bin=Path(pg_bin) if pg_bin else None)
    except GraphileWorkerError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    print(json.dumps({"conninfo": server.conninfo, "seconds": time.monotonic() - began}), flush=True)
    sys.stdin.read()
    server.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
