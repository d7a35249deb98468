"""Values for completion in a shell: quick, silent, and never more than a shell may read.

Loading the database driver takes most of the time a person at a Tab key has. So the answer comes from the last one when
the database is slower, and a process of its own fetches the next.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gw_cli import configuration as c, output

WHOLE_ANSWER_SECONDS: Final = 0.18
"""How long a person at a Tab key is to wait, from the start of the program; its own work is part of it."""

LONGEST_FETCH_SECONDS: Final = 5
FRESH_SECONDS: Final = 5.0

KINDS: Final = ("tasks", "queues", "keys", "workers")
HARMLESS: Final = re.compile(r"[\w@%+=:,./-]+")
"""Names a shell takes as they are; another one is not offered, for what it would do as part of a command."""


def suggest(arguments: Sequence[str]) -> int:
    """Print the values of a kind that begin like a word, one a line: `gw --complete KIND [PREFIX]`. Says no error."""
    kind, prefix = (*arguments, "", "")[:2]
    if kind in KINDS:
        for name in _names(kind):
            if name.startswith(prefix):
                output.line(name)
    output.flush()
    return 0


def _names(kind: str) -> list[str]:
    from gw_cli.session import configured

    try:
        configuration = configured()
        cache = _cache_file(configuration, kind)
        if not _is_fresh(cache):
            _renew(configuration, kind, cache)
        return cache.read_text("utf-8").splitlines()
    except Exception:  # noqa: BLE001 - whoever presses Tab must see no error, whatever it is
        return []


def _cache_file(configuration: c.Configuration, kind: str) -> Path:
    """Return where the names of this queue are kept; the folder is for us alone."""
    where = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(where) / "gw"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    naming = [os.environ.get(name, "") for name in c.NAMING_PG_VARIABLES]
    queue = repr((configuration[c.CONNECTION], configuration[c.SCHEMA], os.getcwd(), naming))
    return folder / f"{kind}-{hashlib.sha256(queue.encode()).hexdigest()[:16]}"


def _is_fresh(cache: Path) -> bool:
    try:
        return time.time() - cache.stat().st_mtime < FRESH_SECONDS
    except OSError:
        return False


def _renew(configuration: c.Configuration, kind: str, cache: Path) -> None:
    """Let another process ask the database, and wait for it as long as a person would."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        _fetch_and_end(configuration, kind, cache)
    os.close(writing)
    # The other process closes its end when it ends, and only then is there something to read: the end.
    import select

    select.select([reading], [], [], max(0.0, WHOLE_ANSWER_SECONDS - time.process_time()))


def _fetch_and_end(configuration: c.Configuration, kind: str, cache: Path) -> None:
    """Write what the database says, in a session of its own without anything of the terminal's; does not return."""
    import signal

    try:
        os.setsid()
        signal.alarm(LONGEST_FETCH_SECONDS)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        _write(cache, _fetched(configuration, kind))
    finally:
        os._exit(0)


def _fetched(configuration: c.Configuration, kind: str) -> list[str]:
    from gw_cli.session import open_client
    from gw_core import NameKind

    if str(configuration[c.CONNECTION] or "").startswith("embedded:"):
        return []  # a Tab must not start a server
    with open_client(configuration) as client:
        return [name for name in client.care.names(NameKind(kind)) if HARMLESS.fullmatch(name)]


def _write(cache: Path, names: Sequence[str]) -> None:
    new = cache.with_suffix(f".{os.getpid()}")
    new.touch(mode=0o600)
    new.write_text("".join(f"{name}\n" for name in names), "utf-8")
    new.replace(cache)
