"""Whom the server runs as: PostgreSQL refuses root, so root lends it an unprivileged account."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from gw_core.domain.errors import EmbeddedError

ROOT = 0


class Switch(TypedDict, total=False):
    """The arguments that make `subprocess` change the user before it runs a program."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group; `borrowed` when they are not our own and we must switch to them."""

    uid: int
    gid: int
    borrowed: bool

    @property
    def switch(self) -> Switch:
        return Switch(user=self.uid, group=self.gid, extra_groups=[]) if self.borrowed else Switch()

    @property
    def has_name(self) -> bool:
        """Whether the passwd database knows the account; in a container with a user of its own it may not."""
        try:
            pwd.getpwuid(self.uid)
        except KeyError:
            return False
        return True


def account_for(data: Path) -> Account:
    """Ourselves; as root the owner of the data or of the folder around them, else `nobody`: none is ever created."""
    if os.geteuid() != ROOT:
        return Account(os.geteuid(), os.getegid(), borrowed=False)
    for place in (data, data.parent):
        if place.exists() and (owner := place.stat()).st_uid != ROOT:
            return Account(owner.st_uid, owner.st_gid, borrowed=True)
    entry = _unprivileged_entry()
    return Account(entry.pw_uid, entry.pw_gid, borrowed=True)


def _unprivileged_entry() -> pwd.struct_passwd:
    # initdb looks its own user up in the passwd database, so a bare number would not do.
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        others = [entry for entry in pwd.getpwall() if entry.pw_uid != ROOT]
    if not others:
        raise EmbeddedError(
            "PostgreSQL does not run as root and this machine has no other user; create one, for instance 'nobody'"
        )
    return others[0]


def can_reach(path: Path, account: Account) -> bool:
    """Whether the account may pass through every folder above `path`, links resolved."""
    return all(_may_enter(folder.stat(), account) for folder in path.resolve().parents)


def _may_enter(folder: os.stat_result, account: Account) -> bool:
    if folder.st_uid == account.uid:
        return bool(folder.st_mode & stat.S_IXUSR)
    if folder.st_gid == account.gid:
        return bool(folder.st_mode & stat.S_IXGRP)
    return bool(folder.st_mode & stat.S_IXOTH)


def take_over(folder: Path, account: Account) -> None:
    """Make the account the owner of one of our own folders and of everything in it."""
    if not account.borrowed or folder.stat().st_uid == account.uid:
        return
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.lchown(os.path.join(place, name), account.uid, account.gid)
    os.lchown(folder, account.uid, account.gid)
