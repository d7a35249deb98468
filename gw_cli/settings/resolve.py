"""Find the value of each setting: an option, an environment variable, the configuration file or the default."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

import msgspec
from msgspec.structs import replace

from gw_cli.sanitize import quoted
from gw_cli.settings.config_file import ConfigFile, find_config_file
from gw_cli.settings.kinds import type_name
from gw_cli.settings.table import (
    BY_NAME,
    CONNECTION,
    OTHER_VARIABLES,
    SETTINGS,
    SHARDS,
    SWEEP_THRESHOLD,
    TABLES,
    Setting,
)
from gw_core import WorkerSettings
from gw_core.errors import InvalidSettingError
from gw_core.runtime.files import current_folder

T = TypeVar("T")

NAMING_PG_VARIABLES: Final = ("PGDATABASE", "PGSERVICE")
"""The variables by which libpq finds its database; the others only complete them."""


class Origin(msgspec.Struct, frozen=True):
    """Where a value came from: `kind`, and the name of the flag, variable or file."""

    kind: Literal["flag", "environment", "file", "default"]
    location: str = ""

    def __str__(self) -> str:
        return self.location or self.kind


class Resolved(msgspec.Struct, frozen=True):
    """A value and its origin."""

    value: Any
    origin: Origin


class Configuration(msgspec.Struct, frozen=True):
    """The values of all settings."""

    entries: Mapping[str, Resolved]
    file: Path | None = None

    def __getitem__(self, setting: Setting[T]) -> T:
        """Return the value of a setting."""
        return cast(T, self.entries[setting.name].value)

    def origin(self, setting: Setting[Any]) -> Origin:
        """Return where its value came from."""
        return self.entries[setting.name].origin

    def derive(self, setting: Setting[T], value: T) -> Configuration:
        """Return a copy in which the command itself decides this setting."""
        changed = Resolved(value, Origin("flag", setting.flag))
        return replace(self, entries=_with_derived({**self.entries, setting.name: changed}))

    def worker_settings(self) -> WorkerSettings:
        """Return the settings of a worker, for `Runner(settings=…)`."""
        try:
            return WorkerSettings(**{each.field: self[each] for each in SETTINGS if each.field})
        except InvalidSettingError as error:
            raise InvalidSettingError(_as_given(str(error), self)) from None


def _as_given(message: str, configuration: Configuration) -> str:
    """Return a message about fields of `WorkerSettings` with the names of their settings where they were given."""
    names = {each.field: _name_as_given(each, configuration) for each in SETTINGS if each.field}
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]) if "_" in word[0] else word[0], message)


def _name_as_given(setting: Setting[Any], configuration: Configuration) -> str:
    origin = configuration.origin(setting)
    return {"environment": origin.location, "file": setting.name}.get(origin.kind, setting.flag)


def load(path: str | os.PathLike[str] | None = None, *, environment: Mapping[str, str] | None = None) -> Configuration:
    """Return the settings of a file and the environment, for a program that embeds a `Runner`.

    Without a path it uses the file that `gw` would find. Raises `InvalidSettingError` as the command line reports it.
    """
    variables = os.environ if environment is None else environment
    folder = _here()
    file = find_config_file(None if path is None else os.fspath(path), folder, origin="its path")
    return resolve(Sources(environment=variables, file=file, folder=folder))


def resolve_for_process(
    config: str | None = None, flags: Mapping[str, object] | None = None, *, report: Callable[[str], None]
) -> Configuration:
    """Return the settings of this process; `report` receives notices about the configuration file."""
    folder = _here()
    given, origin = (config, "--config") if config else (os.environ.get("GW_CONFIG") or None, "GW_CONFIG")
    file = find_config_file(given, folder, origin=origin, report=report)
    return resolve(Sources(flags=flags or {}, environment=os.environ, file=file, folder=folder))


def _here() -> Path:
    if (folder := current_folder()) is None:
        raise InvalidSettingError("the current folder was deleted; change to another one")
    return folder


# -- which value counts ----------------------------------------------------------------------------------------------


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where values can come from, in order of precedence; an option that was not given is None."""

    flags: Mapping[str, object] = msgspec.field(default_factory=dict)
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    file: ConfigFile | None = None
    folder: Path = Path()
    """The current folder; relative paths in a file that is there stay as they are."""


def resolve(sources: Sources) -> Configuration:
    """Return the value of every setting; raises `InvalidSettingError` with the location, the value and the fix."""
    stored = checked_file(sources.file)
    entries = {setting.name: _resolve_one(setting, sources, stored) for setting in SETTINGS}
    return Configuration(_with_derived(entries), None if sources.file is None else sources.file.path)


def _with_derived(entries: Mapping[str, Resolved]) -> Mapping[str, Resolved]:
    """Adapt the defaults that depend on `sweep-threshold`."""
    # Without recovery, any threshold is valid: `gw sweep` accepts those that a worker rejects.
    worker = WorkerSettings(recover=False, sweep_threshold=entries[SWEEP_THRESHOLD.name].value)
    derived = {
        setting.name: Resolved(attrgetter(setting.derived)(worker), Origin("default"))
        for setting in SETTINGS
        if setting.derived and entries[setting.name].origin.kind == "default"
    }
    return {**entries, **derived}


def _resolve_one(setting: Setting[Any], sources: Sources, stored: Mapping[str, object]) -> Resolved:
    given = sources.flags.get(setting.name)
    if given is not None and given != [] and given != ():
        if setting is SHARDS:
            given = _with_addresses(given, _resolve_one(setting, replace(sources, flags={}), stored).value)
        return _read(setting, given, Origin("flag", setting.flag))
    for variable in setting.variables:
        # An empty variable counts as unset, because a container's environment cannot unset one.
        if sources.environment.get(variable):
            return _read(setting, sources.environment[variable], Origin("environment", variable))
    if setting is CONNECTION and (naming := naming_pg_variable(sources.environment)):
        # The empty string leaves everything to libpq, which reads the variables.
        return Resolved("", Origin("environment", naming))
    if setting.name in stored and sources.file is not None:
        path = sources.file.path
        folder = None if path.parent == sources.folder else path.parent
        return _read(setting, stored[setting.name], Origin("file", str(path)), folder)
    return Resolved(setting.default, Origin("default"))


def _with_addresses(given: object, configured: Mapping[str, str]) -> object:
    """Return the shards of an option; one that is named alone is one of those configured elsewhere."""
    if not isinstance(given, list):
        return given
    return [f"{each}={configured[each]}" if each in configured else each for each in given]


def _read(setting: Setting[Any], raw: object, origin: Origin, folder: Path | None = None) -> Resolved:
    try:
        value = setting.kind.read(raw)
    except ValueError as error:
        location = origin.location if origin.kind != "file" else f"{origin.location}: {setting.name}"
        raise InvalidSettingError(f"{location}{_shown(setting, raw, origin)}: {error}") from None
    if setting.kind.relative is not None and folder is not None:
        value = setting.kind.relative(value, folder)
    return Resolved(value, origin)


def _shown(setting: Setting[Any], raw: object, origin: Origin) -> str:
    """Return what a message shows of a wrong value, and of a file its type unless that is a text."""
    if setting.file_only and isinstance(raw, list):  # the message names the table that is wrong
        return ""
    shown = "" if setting.secret else quoted(str(raw).lower() if isinstance(raw, bool) else str(raw))
    if origin.kind != "file" or isinstance(raw, str):
        return shown and f" {shown}"
    return f" is {type_name(raw)}" + (shown and f" ({shown[1:-1]})")


def naming_pg_variable(environment: Mapping[str, str]) -> str | None:
    """Return the first of libpq's variables that names a database, if one is set."""
    return next((name for name in NAMING_PG_VARIABLES if environment.get(name)), None)


def is_database_named(environment: Mapping[str, str]) -> bool:
    """Return whether the environment names a database."""
    return any(environment.get(name) for name in (*CONNECTION.variables, *NAMING_PG_VARIABLES))


# -- what the file and the environment contain -----------------------------------------------------------------------


def checked_file(file: ConfigFile | None) -> Mapping[str, object]:
    """Return the file's values by setting; raises `InvalidSettingError` for an unknown or repeated key."""
    if file is None:
        return {}
    stored: dict[str, object] = {}
    for key, raw in _flattened(file):
        name = key.replace("_", "-")
        if name not in BY_NAME:
            raise InvalidSettingError(f"{file.path}: the key {quoted(key)} is unknown; {_suggestion(name)}")
        if name in stored:
            raise InvalidSettingError(f"{file.path}: the key {quoted(name)} appears twice; keep one")
        stored[name] = raw
    return stored


def _flattened(file: ConfigFile) -> Iterator[tuple[str, object]]:
    """Yield the keys of the file; those of a table have its name as a prefix."""
    for key, raw in file.values.items():
        if key in TABLES:
            if not isinstance(raw, Mapping):
                raise InvalidSettingError(f"{file.path}: {key} is {type_name(raw)}: write [{key}], settings below")
            yield from ((f"{key}.{inner}", each) for inner, each in raw.items())
        else:
            yield key, raw


def _suggestion(name: str) -> str:
    same = [each.name for each in SETTINGS if f"--{name}" in each.flags]
    close = same or get_close_matches(name, BY_NAME, n=1)
    return f"did you mean {close[0]}?" if close else f"valid keys are {', '.join(BY_NAME)}"


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the `GW_…` variables that are not settings and probably misspelled."""
    known = {variable for setting in SETTINGS for variable in setting.variables} | set(OTHER_VARIABLES)
    return sorted(name for name in environment if name.startswith("GW_") and name not in known)
