"""Find and read the configuration file, and decide whether to trust it.

A file decides which programs run (`pg-bin`, `tasks`) and where a password from the environment is sent (`connection`).
So gw uses a file that it finds only if no other user than this one and root can write it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from gw_core.errors import InvalidSettingError

NAMES: Final = ("gw.toml", "pyproject.toml")
OVERRIDE: Final = "to use it anyway, name it with --config or GW_CONFIG"


class ConfigFile(msgspec.Struct, frozen=True):
    """The content of `gw.toml`, or of `[tool.gw]` in a `pyproject.toml`."""

    path: Path
    values: Mapping[str, object]


def _report_nothing(_message: str) -> None:
    pass


def find_config_file(
    given: str | None,
    folder: Path,
    *,
    origin: str = "--config",
    report: Callable[[str], None] = _report_nothing,
) -> ConfigFile | None:
    """Return the given file, or the nearest `gw.toml` or `pyproject.toml` with `[tool.gw]` from `folder` upwards.

    The search ends at the home folder and at the root of a repository. A file that other users can write is used only
    if it is given; `report` receives a notice in either case. Raises `InvalidSettingError` if the given file does not
    exist, with where it was given, `origin`, or if a file is not TOML.
    """
    if given is not None:
        return _given(Path(given).expanduser().absolute(), origin, report)
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for each in (folder, *folder.parents):
        for path in (each / name for name in NAMES):
            if path.is_file() and (values := _trusted_part(path, report)) is not None:
                return ConfigFile(path, values) if values is not UNTRUSTED else None
        if each == home or (each / ".git").exists():
            return None
    return None


UNTRUSTED: Final[dict[str, Any]] = {}
"""Stands for the values of a file that is not used. The search ends there, so no file above it applies."""


def _given(path: Path, origin: str, report: Callable[[str], None]) -> ConfigFile:
    if not path.is_file():
        raise InvalidSettingError(f"the configuration file {str(path)!r} does not exist; check {origin}")
    if reason := why_untrusted(path):
        report(f"Using the configuration file {path} as requested, although {reason}.")
    return ConfigFile(path, _own_part(path) or {})


def _trusted_part(path: Path, report: Callable[[str], None]) -> dict[str, Any] | None:
    reason = why_untrusted(path)
    if reason is None:
        return _own_part(path)
    if path.name == "pyproject.toml" and not _has_gw_table(path):
        return None
    report(f"Ignoring the configuration file {path}, because {reason}; {OVERRIDE}.")
    return UNTRUSTED


def _has_gw_table(path: Path) -> bool:
    try:
        return bool(_own_part(path))
    except InvalidSettingError:
        return False


def why_untrusted(path: Path) -> str | None:
    """Return why another user than this one and root can write the file, or None."""
    return _first_reason(_places_of(path))


def why_untrusted_folder(folder: Path) -> str | None:
    """Return why another user than this one and root can write the folder, or anything in it, or None."""
    below = (Path(root, name) for root, folders, files in os.walk(folder) for name in (*folders, *files))
    return _first_reason(place for path in (folder, *below) for place in _places_of(path))


def _places_of(path: Path) -> Sequence[Path]:
    """Return where the file, or another one in its place, can be written."""
    real = Path(os.path.realpath(path))
    return (real, real.parent, path.parent)


def _first_reason(places: Iterable[Path]) -> str | None:
    for place in dict.fromkeys(places):
        try:
            state = place.stat()
        except FileNotFoundError:  # a link to nothing
            continue
        if state.st_uid not in (os.geteuid(), 0):
            return f"{place} belongs to {user_name(state.st_uid) or 'the user ' + str(state.st_uid)}"
        if state.st_mode & stat.S_IWOTH:
            return f"every user may write to {place}"
        if state.st_mode & stat.S_IWGRP and not is_private_group(state.st_gid, state.st_uid):
            return f"other users of a group may write to {place}"
    return None


def is_private_group(gid: int, uid: int) -> bool:
    """Return whether the group is the private one that many systems create with each user."""
    import grp

    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user_name(uid) and set(group.gr_mem) <= {group.gr_name}


def user_name(uid: int) -> str | None:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def _own_part(path: Path) -> dict[str, Any] | None:
    """Return the settings in the file, or None if it has none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidSettingError(f"the configuration file {str(path)!r} cannot be read: {error.strerror}") from error
    if path.name == "pyproject.toml" and b"gw" not in content:
        return None  # saves parsing: most projects do not mention gw
    values = _parsed(content, path)
    if path.name == "pyproject.toml":
        tools = values.get("tool")
        values = tools.get("gw") if isinstance(tools, dict) else None
    if values is not None and not isinstance(values, dict):
        raise InvalidSettingError(f"{path}: tool.gw is not a table; write [tool.gw] and the settings below it")
    return values


def _parsed(content: bytes, path: Path) -> Any:
    import tomllib  # late: most commands find no file

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSettingError(f"{path} is not TOML: {error}") from error
