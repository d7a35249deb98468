"""npm's graphile-worker as one of the fleet."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gw_core import Client

from .fleet import CRONTAB
from .servers import DATABASE

TESTS: Final = Path(__file__).resolve().parents[1]
TASKS: Final = Path(__file__).with_name("node_tasks")
OURS: Final = "gw-"
"""How the ids of our pools begin."""


def node_command(port: int, folder: Path) -> Sequence[str] | None:
    """Return how to start the newest worker, in `folder`; None when there is no npm to install it with."""
    if shutil.which("npm") is None:
        return None
    sys.path[:0] = [str(TESTS)]
    from support.node_worker import node_worker  # shared with the interop tests, which install it once

    node = node_worker()
    folder.mkdir()
    shutil.copytree(TASKS, folder / "tasks")
    shutil.copy(CRONTAB, folder / "crontab")
    cli = str(node.package / "dist" / "cli.js")
    url = f"postgres://postgres@127.0.0.1:{port}/{DATABASE}"
    return [str(node.node), "--no-warnings", cli, "--connection", url, "--jobs", "5", "--poll-interval", "500"]


def free_what_node_held(client: Client) -> None:
    """Take the locks of Node's pools, as an operator does who knows that they are dead: they send no heartbeats."""
    client.workers.unlock([worker.id for worker in client.workers.list() if not worker.id.startswith(OURS)])
