"""Create the files of an embedded server as the account that they belong to.

Root runs this as a script, which gives up root before it touches anything: the owner of a folder can at any time put a
link in the place of a file, and whatever root did by that name would happen to the link's target.
Only the standard library is imported, and before the account changes: afterwards our own files may be out of reach.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

UNFINISHED: Final = "data.new"
DATA: Final = "data"
MAX_ERROR_LENGTH: Final = 1000

D = TypeVar("D", int, int | None)


@contextmanager
def closing(descriptor: D) -> Iterator[D]:
    """Close a file descriptor at the end of the block, if there is one."""
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def make_folders(folder: int, parts: Sequence[str]) -> None:
    """Create folders inside each other, none of them through a link."""
    if parts:
        with suppress(FileExistsError):
            os.mkdir(parts[0], 0o700, dir_fd=folder)
        with closing(open_folder(parts[0], folder)) as inner:
            make_folders(inner, parts[1:])


def make_file(folder: int, name: str, text: str = "") -> None:
    """Create a file, unless there is one of that name."""
    with suppress(FileExistsError):
        _write(folder, name, text, os.O_CREAT | os.O_EXCL)


def make_unfinished(folder: int) -> None:
    """Create the empty folder that becomes the data folder, without what an earlier attempt left."""
    with suppress(FileNotFoundError):
        _remove(UNFINISHED, folder)
    os.mkdir(UNFINISHED, 0o700, dir_fd=folder)


def fill(data: int, commands: Sequence[Sequence[str]], settings: str, environment: dict[str, str]) -> str | None:
    """Create a cluster in the open folder by the first command that succeeds; return why all of them failed."""
    complaint = ""
    for command in commands:
        _empty(data)
        answer = subprocess.run(  # noqa: S603 - no shell, and the programs are those the caller found
            command, cwd="/", env=environment, pass_fds=(data,), stdin=subprocess.DEVNULL, capture_output=True
        )
        if answer.returncode == 0:
            _write(data, "postgresql.conf", settings, os.O_APPEND)
            # One sync for everything is many times faster than initdb's own, file by file.
            os.sync()
            return None
        complaint = " ".join(answer.stderr.decode("utf-8", "replace").split())[-MAX_ERROR_LENGTH:]
    return complaint


def finish(folder: int) -> None:
    """Give the filled folder its name, durably even after a power cut."""
    os.rename(UNFINISHED, DATA, src_dir_fd=folder, dst_dir_fd=folder)
    # Without this the old name could come back, and the next start would throw the data away.
    os.fsync(folder)


def open_folder(name: str, inside: int) -> int:
    """Open a folder by its name inside an open one; raises `OSError` when a link stands there."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)


def _empty(folder: int) -> None:
    for name in os.listdir(folder):
        _remove(name, folder)


def _remove(name: str, folder: int) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def _write(folder: int, name: str, text: str, flags: int) -> None:
    with closing(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | flags, 0o600, dir_fd=folder)) as file:
        os.write(file, text.encode())


# -- as another account ----------------------------------------------------------------------------------------------

STEPS: Final[dict[str, Callable[..., Any]]] = {
    step.__name__: step for step in (make_folders, make_file, make_unfinished, fill, finish)
}


def perform(
    step: Callable[..., Any], folder: int, *arguments: Any, switch: dict[str, Any], environment: dict[str, str]
) -> Any:
    """Take a step in an open folder, in a process of the account's own when there is one to switch to."""
    if not switch:
        return step(folder, *arguments)
    answer = subprocess.run(  # noqa: S603 - this interpreter and this file
        [sys.executable, "-I", "-S", "-B", __file__, json.dumps([step.__name__, folder, arguments, switch])],
        env=environment,
        pass_fds=(folder,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    if not answer.stdout:
        raise ChildProcessError(f"the step {step.__name__} of user {switch['user']} ended with {answer.returncode}")
    failure, result = json.loads(answer.stdout)
    if failure is not None:
        raise OSError(*failure)
    return result


def _main(text: str) -> None:
    name, folder, arguments, switch = json.loads(text)
    os.setgroups(switch["extra_groups"])
    os.setgid(switch["group"])
    os.setuid(switch["user"])
    os.umask(0o077)
    try:
        answer = [None, STEPS[name](folder, *arguments)]
    except OSError as error:
        answer = [[error.errno or 0, error.strerror or str(error), error.filename], None]
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    _main(sys.argv[1])
