"""The values a shell completes: at once from the last answer, or from the database within a fifth of a second.

Loading the database driver takes longer than everything else together, so another process begins with it before this
one has read the configuration. That process has no terminal and outlives this one: what it learns too late is there
for the next Tab.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from gw_cli.configuration import Configuration

WHOLE_ANSWER_SECONDS: Final = 0.19
"""How long a person at a Tab key is to wait, from the start of the program."""

LONGEST_FETCH_SECONDS: Final = 5
FRESH_SECONDS: Final = 5.0
KEPT_SECONDS: Final = 3600.0
MAX_NAMES: Final = 200

KINDS: Final = ("tasks", "queues", "keys", "workers")
HARMLESS: Final = r"[\w@%+=:,./-]+"
"""Names a shell takes as they are; another one is not offered, for what it would do as part of a command."""

_fetchers: list[Fetcher] = []
"""The process that has been started ahead, if any."""


def ahead(arguments: Sequence[str]) -> None:
    """Start what will be needed to answer these arguments."""
    if arguments and arguments[0] in KINDS:
        _fetchers.append(Fetcher())


def suggest(arguments: Sequence[str]) -> int:
    """Print the values of a kind that begin like a word, one a line: `gw --complete KIND [PREFIX]`. Says no error."""
    import re

    from gw_cli import output

    kind, prefix = (*arguments, "", "")[:2]
    if kind in KINDS:
        for name in _names(kind, prefix):
            if name.startswith(prefix) and re.fullmatch(HARMLESS, name):
                output.line(name)
    output.flush()
    return 0


def _names(kind: str, prefix: str) -> list[str]:
    fetcher = _fetchers.pop() if _fetchers else Fetcher()
    try:
        from gw_cli import config_file
        from gw_cli.connect import looked_up

        configuration = looked_up(say=lambda _message: None)
        if not config_file.may_complete(configuration):
            return []
        everything = _cache_file(configuration, kind, "")
        if _is_fresh(everything) and len(names := _read(everything)) < MAX_NAMES:
            return names
        cache = _cache_file(configuration, kind, prefix)
        if not _is_fresh(cache):
            fetcher.fetch(configuration, kind, prefix, cache)
        # On a slow machine the last answer to whatever else was asked is better than none.
        return _read(cache if cache.exists() else everything)
    except Exception:  # noqa: BLE001 - whoever presses Tab must see no error, whatever it is
        return []
    finally:
        fetcher.close()


def _cache_file(configuration: Configuration, kind: str, prefix: str) -> Path:
    """Return where the names of this queue that begin so are kept; the folder is for us alone."""
    import hashlib
    from pathlib import Path

    from gw_cli import configuration as c

    where = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(where) / "gw"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    naming = [os.environ.get(name, "") for name in c.NAMING_PG_VARIABLES]
    queue = repr((configuration[c.CONNECTION], configuration[c.SCHEMA], os.getcwd(), naming, prefix))
    return folder / f"{kind}-{hashlib.sha256(queue.encode()).hexdigest()[:16]}"


def _read(cache: Path) -> list[str]:
    return cache.read_text("utf-8").splitlines()


def _is_fresh(cache: Path) -> bool:
    try:
        return time.time() - cache.stat().st_mtime < FRESH_SECONDS
    except OSError:
        return False


class Fetcher:
    """Another process that asks the database, once it is told what."""

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
        """Have the names of a kind written, and wait for it as long as a person would."""
        import json
        import select

        from gw_cli import configuration as c

        orders = [configuration[c.CONNECTION], configuration[c.SCHEMA], kind, prefix, str(cache)]
        os.write(self._orders, json.dumps(orders).encode())
        os.close(self._orders)
        self._orders = -1
        # The other process closes its end when it ends, and only then is there something to read: the end.
        left = self._began + WHOLE_ANSWER_SECONDS - time.monotonic()
        select.select([self._answers], [], [], max(0.0, left))

    def close(self) -> None:
        """Let the other process go; without orders it ends."""
        for end in (self._orders, self._answers):
            if end != -1:
                os.close(end)
        self._orders = self._answers = -1


def _fetch_and_end(orders: int, answers: int) -> None:
    """Write what the database says, in a session of its own without anything of the terminal's; does not return."""
    import signal

    try:
        os.setsid()
        signal.alarm(LONGEST_FETCH_SECONDS)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        import json

        from gw_core.operations import known_names  # the slow part, while our parent reads the configuration

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
    new = f"{cache}.{os.getpid()}"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write("".join(f"{name}\n" for name in names))
    os.replace(new, cache)
    _clear_away(os.path.dirname(cache))


def _clear_away(folder: str) -> None:
    """Delete answers that nobody has asked for again in an hour."""
    for entry in os.scandir(folder):
        if time.time() - entry.stat().st_mtime > KEPT_SECONDS:
            os.unlink(entry)
