"""Make files: new ones that only their owner can read, and never through a link.

In a folder that others can write to, they can put links in place of names that gw is going to use.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

PRIVATE: Final = 0o600
SHARED: Final = 0o666
"""With the rights of the user's umask: for files of a project."""

_SAFELY: Final = os.O_NOFOLLOW | os.O_CLOEXEC


def current_folder() -> Path | None:
    """Return the current folder; None if it was deleted, as a deployment does while a worker runs."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def new_file(path: str | os.PathLike[str], *, mode: int = PRIVATE) -> IO[bytes]:
    """Create a file and return it for writing; raises `FileExistsError` if something, even a link, has its name."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY, mode), "wb")


def write_new(path: str | os.PathLike[str], text: str, *, mode: int = PRIVATE) -> None:
    """Create a file with this text, as `new_file` does."""
    with new_file(path, mode=mode) as file:
        file.write(text.encode())


def replace_file(path: str | os.PathLike[str], text: str) -> None:
    """Put a file with this text in place of what has its name; other programs see the old one or the whole new one."""
    new = Path(f"{os.fspath(path)}.{os.urandom(8).hex()}")
    try:
        write_new(new, text)
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def append_to(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file to append to, unbuffered; it is created if it is missing. Raises `OSError` for a link."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _SAFELY, PRIVATE), "ab", buffering=0)
