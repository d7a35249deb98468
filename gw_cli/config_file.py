"""Find and read the configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gw_cli.configuration import ConfigFile
from gw_core import InvalidSettingError


def find(given: str | None, folder: Path) -> ConfigFile | None:
    """Return the given file, or the nearest `gw.toml` or `pyproject.toml` with `[tool.gw]` from `folder` upwards.

    Raises `InvalidSettingError` when the given file is not there, or a file is not TOML.
    """
    if given is not None:
        path = Path(given).expanduser().absolute()
        if not path.is_file():
            raise InvalidSettingError(f"the configuration file {str(path)!r} does not exist; check --config")
        return ConfigFile(path, _own_part(path) or {})
    for each in (folder, *folder.parents):
        for name in ("gw.toml", "pyproject.toml"):
            path = each / name
            if path.is_file() and (values := _own_part(path)) is not None:
                return ConfigFile(path, values)
    return None


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
