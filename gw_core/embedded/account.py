"""Choose the account of the server: PostgreSQL does not run as root, so root uses an unprivileged account."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gw_core.domain.errors import EmbeddedError

ROOT = 0
# `postgres` is the account that packages of PostgreSQL create for servers; every other service may run as `nobody`.
UNPRIVILEGED = ("postgres", "nobody")
SHARED = "nobody"
# What leads programs to their libraries, their temporary files and the right time. Everything else may hold secrets,
# and everything that shares the server's account can read its environment.
HANDED_ON = ("PATH", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group; `borrowed` when they are not our own and we must switch to them."""

    uid: int
    gid: int
    borrowed: bool

    @property
    def switch(self) -> dict[str, Any]:
        """The arguments that make `subprocess` change the user before it runs a program."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.borrowed else {}

    @property
    def name(self) -> str | None:
        """The name in the passwd database; None when it has no entry, as in a container with a user of its own."""
        return name_of(self.uid)

    @property
    def is_shared(self) -> bool:
        """Whether other services of this machine usually run as the account too."""
        return self.borrowed and self.name == SHARED


def name_of(uid: int) -> str | None:
    """Return the user's name, or None when the passwd database has no entry."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def server_account(folder: os.stat_result | None, data: os.stat_result | None) -> Account:
    """Ourselves; as root the owner of the data or of the folder around them, else an unprivileged account.

    No account is ever created. Raises `EmbeddedError` when the machine has none but root.
    """
    if os.geteuid() != ROOT:
        return Account(os.geteuid(), os.getegid(), borrowed=False)
    for place in (data, folder):
        if place is not None and place.st_uid != ROOT:
            return Account(place.st_uid, place.st_gid, borrowed=True)
    entry = _unprivileged_entry()
    return Account(entry.pw_uid, entry.pw_gid, borrowed=True)


def keeper_of(folder: os.stat_result) -> Account:
    """Return the account that creates files in a folder: ourselves, or its owner when we are root."""
    if os.geteuid() == ROOT and folder.st_uid != ROOT:
        return Account(folder.st_uid, folder.st_gid, borrowed=True)
    return Account(os.geteuid(), os.getegid(), borrowed=False)


def _unprivileged_entry() -> pwd.struct_passwd:
    # initdb looks its own user up in the passwd database, so a bare number would not do.
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    others = [entry for entry in pwd.getpwall() if entry.pw_uid != ROOT]
    if not others:
        raise EmbeddedError(
            "PostgreSQL does not run as root and this machine has no other user; create one, for instance 'postgres'"
        )
    return others[0]


def minimal_environment() -> dict[str, str]:
    """Return the environment of the server and of all that is started for it: nothing that may be a secret."""
    return {name: os.environ[name] for name in HANDED_ON if name in os.environ} | {"LC_ALL": "C"}


def can_reach(path: Path, account: Account) -> bool:
    """Whether the account may pass through every folder above `path`, links resolved."""
    return all(_may_enter(folder.stat(), account) for folder in path.resolve().parents)


def _may_enter(folder: os.stat_result, account: Account) -> bool:
    if folder.st_uid == account.uid:
        return bool(folder.st_mode & stat.S_IXUSR)
    if folder.st_gid == account.gid:
        return bool(folder.st_mode & stat.S_IXGRP)
    return bool(folder.st_mode & stat.S_IXOTH)


def give(folder: int, account: Account, name: str) -> None:
    """Give an open folder of root's, with its content, to the account. Folders of other owners stay unchanged.

    Raises `EmbeddedError` for a file that has a second name: elsewhere, it would change its owner too.
    """
    if not account.borrowed or os.fstat(folder).st_uid != ROOT:
        return
    # Only root may enter until all is done, so no other account can replace what is being handed over.
    os.fchmod(folder, 0o700)
    for place, entry, directory in _below(folder):
        state = os.stat(entry, dir_fd=directory, follow_symlinks=False)
        if state.st_nlink > 1 and not stat.S_ISDIR(state.st_mode):
            raise EmbeddedError(
                f"{os.path.join(name, place, entry)!r} has a second name elsewhere (a hard link);"
                f" copy the folder, then give it away with: chown -R {account.name or account.uid} {name!r}"
            )
        os.chown(entry, account.uid, account.gid, dir_fd=directory, follow_symlinks=False)
    os.fchown(folder, account.uid, account.gid)


def _below(folder: int) -> Iterator[tuple[str, str, int]]:
    """Yield what is in the folder, its deepest part first: the place, the name, and the open folder that holds it."""
    for place, folders, files, directory in os.fwalk(".", topdown=False, dir_fd=folder):
        for entry in (*folders, *files):
            yield place, entry, directory
