"""The accounts of the servers that tests start as root."""

from __future__ import annotations

import os
from pathlib import Path

from gw_core.embedded.account import Account, give, server_account


def account_for(data: Path) -> Account:
    """Return the account for the server of a data folder, which need not exist yet."""
    folder, existing = (place.stat() if place.exists() else None for place in (data.parent, data))
    return server_account(folder, existing)


def take_over(folder: Path, account: Account) -> None:
    """Give one of root's own folders, with everything in it, to the account."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        give(descriptor, account, str(folder))
    finally:
        os.close(descriptor)
