"""Find and read the configuration file, and decide whether to trust it.

A file decides which programs run (`pg-bin`, `tasks`) and where a password from the environment is sent (`connection`),
so one that was found counts only when nobody but this user and root can have written it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gw_cli.configuration import CONNECTION, ConfigFile, Configuration
from gw_core.errors import InvalidSettingError

NAMES: Final = ("gw.toml", "pyproject.toml")
OVERRIDE: Final = "to use it all the same, name it with --config or GW_CONFIG"


def _say_nothing(_message: str) -> None:
    pass


def find(given: str | None, folder: Path, *, say: Callable[[str], None] = _say_nothing) -> ConfigFile | None:
    """Return the given file, or the nearest `gw.toml` or `pyproject.toml` with `[tool.gw]` from `folder` upwards.

    The search ends at the home folder and at the root of a repository. A file that others may have written is used only
    when it is given; `say` is called with a sentence about either. Raises `InvalidSettingError` when the given file is
    not there, or a file is not TOML.
    """
    if given is not None:
        return _given(Path(given).expanduser().absolute(), say)
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for each in (folder, *folder.parents):
        for path in (each / name for name in NAMES):
            if path.is_file() and (values := _trusted_part(path, say)) is not None:
                return ConfigFile(path, values) if values is not UNTRUSTED else None
        if each == home or (each / ".git").exists():
            return None
    return None


UNTRUSTED: Final[dict[str, Any]] = {}
"""Stands for the values of a file that is not used. The search ends there: what lies above was not meant."""


def _given(path: Path, say: Callable[[str], None]) -> ConfigFile:
    if not path.is_file():
        raise InvalidSettingError(f"the configuration file {str(path)!r} does not exist; check --config")
    if reason := why_untrusted(path):
        say(f"Using the configuration file {path} as requested, although {reason}.")
    return ConfigFile(path, _own_part(path) or {})


def _trusted_part(path: Path, say: Callable[[str], None]) -> dict[str, Any] | None:
    reason = why_untrusted(path)
    if reason is None:
        return _own_part(path)
    if path.name == "pyproject.toml" and not _mentions_us(path):
        return None
    say(f"Ignoring the configuration file {path}, because {reason}; {OVERRIDE}.")
    return UNTRUSTED


def _mentions_us(path: Path) -> bool:
    try:
        return bool(_own_part(path))
    except InvalidSettingError:
        return False


# -- trust -----------------------------------------------------------------------------------------------------------


def why_untrusted(path: Path) -> str | None:
    """Return in words who besides this user and root may have written the file; None when nobody."""
    real = Path(os.path.realpath(path))
    for place in dict.fromkeys((real, real.parent, path.parent)):
        state = place.stat()
        if state.st_uid not in (os.geteuid(), 0):
            return f"{place} belongs to {_user(state.st_uid) or 'the user ' + str(state.st_uid)}"
        if state.st_mode & stat.S_IWOTH:
            return f"every user may write to {place}"
        if state.st_mode & stat.S_IWGRP and not _is_private_group(state.st_gid, state.st_uid):
            return f"other users of a group may write to {place}"
    return None


def _is_private_group(gid: int, uid: int) -> bool:
    """Whether the group is the one of the user alone that many systems create with each user."""
    import grp

    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == _user(uid) and set(group.gr_mem) <= {group.gr_name}


def _user(uid: int) -> str | None:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


# -- connections that commands have used -----------------------------------------------------------------------------


def remember_use(configuration: Configuration) -> None:
    """Note that a command uses the connection which the file names, so that completion may connect to it as well."""
    mark = _mark(configuration)
    if mark is not None and not mark.exists():
        try:
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mark.touch(mode=0o600)
        except OSError:
            return  # completion offers less, which is no reason to fail


def may_complete(configuration: Configuration) -> bool:
    """Whether completion may connect: no file names the connection, or a command has used what this file names.

    A repository that was just cloned belongs to its user, whatever it contains; the Tab key must not connect to it.
    """
    mark = _mark(configuration)
    return mark is None or mark.exists()


def _mark(configuration: Configuration) -> Path | None:
    if configuration.origin(CONNECTION).kind != "file":
        return None
    import hashlib

    where = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    named = repr((str(configuration.file), configuration[CONNECTION]))
    return Path(where, "gw", "used", hashlib.sha256(named.encode(errors="surrogateescape")).hexdigest()[:32])


# -- reading ---------------------------------------------------------------------------------------------------------


def _own_part(path: Path) -> dict[str, Any] | None:
    """Return our part of the file, or None when it has none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidSettingError(f"the configuration file {str(path)!r} cannot be read: {error.strerror}") from error
    if path.name == "pyproject.toml" and b"gw" not in content:
        return None  # spares the parser: most projects' file does not mention us
    values = _parsed(content, path)
    if path.name == "pyproject.toml":
        values = values.get("tool", {}).get("gw")
    if values is not None and not isinstance(values, dict):
        raise InvalidSettingError(f"{path}: tool.gw is not a table; write [tool.gw] and the settings below it")
    return values


def _parsed(content: bytes, path: Path) -> Any:
    import tomllib  # late: most commands find no file

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSettingError(f"{path} is not TOML: {error}") from error
