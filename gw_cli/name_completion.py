"""Complete names in a shell: immediately from the cache, or from the database within 0.2 seconds.

Loading the database driver takes longer than everything else, so another process starts to load it before this one has
read the configuration. That process has no terminal and outlives this one: a late answer is cached for the next Tab.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from gw_cli.settings import Configuration

WHOLE_ANSWER_SECONDS: Final = 0.19
"""The longest wait after a Tab, from the start of the program."""

FETCH_TIMEOUT_SECONDS: Final = 5
FRESH_SECONDS: Final = 5.0
KEPT_SECONDS: Final = 3600.0
MAX_NAMES: Final = 200

COMPLETE: Final = "--complete"
"""What the completion scripts of the shells call; it is not for users."""

KINDS: Final = ("tasks", "queues", "keys", "workers")
HARMLESS: Final = r"[\w@%+=:,./-]+"
"""Names that a shell does not interpret; others are not offered."""

_fetchers: list[Fetcher] = []
"""The process that was started first, if any."""


def start_fetcher(arguments: Sequence[str]) -> None:
    """Start the process that these arguments will need: most words but commands and options can be names."""
    if len(arguments) > 2 and (not arguments[-1].startswith("-") or "=" in arguments[-1]):
        _fetchers.append(Fetcher())


def names(kind: str, prefix: str) -> list[str]:
    """Return the names of a kind with a prefix; none if anything fails."""
    import re

    return [each for each in _names(kind, prefix) if each.startswith(prefix) and re.fullmatch(HARMLESS, each)]


def _names(kind: str, prefix: str) -> list[str]:
    fetcher = _fetchers.pop() if _fetchers else Fetcher()
    try:
        from gw_cli.settings.resolve import resolve_for_process
        from gw_cli.settings.used_connections import may_complete

        configuration = resolve_for_process(report=lambda _message: None)
        if not may_complete(configuration):
            return []
        everything = _cache_file(configuration, kind, "")
        if _is_fresh(everything) and len(names := _read(everything)) < MAX_NAMES:
            return names
        cache = _cache_file(configuration, kind, prefix)
        if not _is_fresh(cache):
            fetcher.fetch(configuration, kind, prefix, cache)
        # On a slow machine an older, wider answer is better than none.
        return _read(cache if cache.exists() else everything)
    except Exception:  # noqa: BLE001 - completion must never print an error
        return []
    finally:
        fetcher.close()


def _cache_file(configuration: Configuration, kind: str, prefix: str) -> Path:
    """Return the cache file for the names of this queue with this prefix; the folder is private."""
    import hashlib
    from pathlib import Path

    from gw_cli.settings import table

    where = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(where) / "gw"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    naming = sorted(each for each in os.environ.items() if each[0].startswith("PG") and each[0] != "PGPASSWORD")
    queue = repr((configuration[table.CONNECTION], configuration[table.SCHEMA], os.getcwd(), naming, prefix))
    return folder / f"{kind}-{hashlib.sha256(queue.encode()).hexdigest()[:16]}"


def _read(cache: Path) -> list[str]:
    return cache.read_text("utf-8").splitlines()


def _is_fresh(cache: Path) -> bool:
    try:
        return time.time() - cache.stat().st_mtime < FRESH_SECONDS
    except OSError:
        return False


class Fetcher:
    """A process that queries the database once it has its orders."""

    def __init__(self) -> None:
        self._began = time.monotonic() - time.process_time()
        theirs, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        if os.fork() == 0:
            os.close(self._orders)
            _fetch_and_end(theirs, answers)
        os.close(theirs)
        os.close(answers)

    def fetch(self, configuration: Configuration, kind: str, prefix: str, cache: Path) -> None:
        """Let the process write the names of a kind, and wait for it within the limit."""
        import json
        import select

        from gw_cli.settings import table

        orders = [configuration[table.CONNECTION], configuration[table.SCHEMA], kind, prefix, str(cache)]
        os.write(self._orders, json.dumps(orders).encode())
        os.close(self._orders)
        self._orders = -1
        # The process closes its end when it exits; only then does the pipe become readable.
        left = self._began + WHOLE_ANSWER_SECONDS - time.monotonic()
        select.select([self._answers], [], [], max(0.0, left))

    def close(self) -> None:
        """Release the process; without orders it exits."""
        for end in (self._orders, self._answers):
            if end != -1:
                os.close(end)
        self._orders = self._answers = -1


def _fetch_and_end(orders: int, answers: int) -> None:
    """Write the names from the database, in a session without a terminal; does not return."""
    import signal

    try:
        os.setsid()
        signal.alarm(FETCH_TIMEOUT_SECONDS)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        import json

        from gw_core.front_ends import known_names

        connection, schema, kind, prefix, cache = json.loads(_read_all(orders) or b"null") or sys.exit()
        _write(cache, _fetched(known_names, connection, schema, kind, prefix))
    finally:
        os._exit(0)


def _read_all(number: int) -> bytes:
    with open(number, "rb") as pipe:
        return pipe.read()


def _fetched(known_names: Any, connection: str | None, schema: str, kind: str, prefix: str) -> list[str]:
    names = known_names(connection, schema, kind, prefix=prefix, limit=MAX_NAMES)
    return [name for name in names if name.isprintable()]


def _write(cache: str, names: Sequence[str]) -> None:
    from gw_core.runtime.files import replace_file

    replace_file(cache, "".join(f"{name}\n" for name in names))
    _delete_old(os.path.dirname(cache))


def _delete_old(folder: str) -> None:
    """Delete answers that were not requested for an hour."""
    for entry in os.scandir(folder):
        if time.time() - entry.stat().st_mtime > KEPT_SECONDS:
            os.unlink(entry)
