"""The `OPTIONS` of the backend in `TASKS`, checked, and how `manage.py gw` selects what a worker runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec
from django.core.exceptions import ImproperlyConfigured

APP: Final = "gw_core.contrib.django.worker:registry"
"""What `gw run --app` loads."""

CONNECTION_VARIABLE: Final = "GW_CONNECTION"
"""The environment variable with the connection string that gw reads."""

BACKEND_VARIABLE: Final = "DJANGO_GW_BACKEND"
"""The environment variable with the alias of a backend."""

LANES_VARIABLE: Final = "DJANGO_GW_LANES"
"""The environment variable with the lanes to serve, separated by commas; without it a worker serves all."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one backend; in `OPTIONS` their names are in upper case."""

    database: str = "default"
    """The alias of the database with the queue."""
    schema: str = "graphile_worker"
    """The schema of the queue."""
    max_attempts: int | None = None
    """The attempts of a job whose task names no number; None: the queue's default."""
    priority_base: int = 0
    """The priority of a job whose task has Django's priority 0; the queue runs smaller numbers first."""
    modules: tuple[str, ...] = ()
    """Modules with tasks beside the `tasks` modules of the apps."""
    keep_results: timedelta | None = None
    """How long the results of tasks are kept; None: they are not."""
    plugins: tuple[str, ...] = ()
    """Plugins of the client that adds the jobs, each as `module:name`."""
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Earlier paths of tasks with their present paths, so that waiting jobs still find a renamed task."""

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Options:
        """Return the options of a backend; raises `ImproperlyConfigured` with every problem."""
        problems = list(_problems(given))
        if problems:
            raise ImproperlyConfigured("; ".join(problems))
        values = {name.lower(): value for name, value in given.items()}
        if "keep_results" in values:
            values["keep_results"] = _duration(values["keep_results"])
        lists = {name: tuple(values.get(name, ())) for name in ("modules", "plugins")}
        return cls(**{**values, **lists})


def _problems(given: Mapping[str, Any]) -> list[str]:
    unknown = [
        f"unknown option {name}; the options are {', '.join(_IS_VALID)}" for name in given if name not in _IS_VALID
    ]
    invalid = [
        f"{name} must be {rule}, not {given[name]!r}"
        for name, (rule, is_valid) in _IS_VALID.items()
        if name in given and not is_valid(given[name])
    ]
    return unknown + invalid


def _duration(value: object) -> timedelta:
    """Return a duration of the settings; zero for anything else."""
    if isinstance(value, timedelta):
        return value
    return timedelta(seconds=value) if isinstance(value, int | float) and 0 < value < 2**40 else timedelta(0)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_name, value))


_IS_VALID: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "DATABASE": ("an alias of DATABASES", _is_name),
    "SCHEMA": ("the name of a schema", _is_name),
    "MAX_ATTEMPTS": ("a positive number", lambda value: _is_integer(value) and value > 0),
    "PRIORITY_BASE": ("a number from -32000 to 32000", lambda value: _is_integer(value) and abs(value) <= 32_000),
    "KEEP_RESULTS": (
        "a timedelta, or a number of seconds, from a second to 36500 days",
        lambda value: timedelta(seconds=1) <= _duration(value) <= timedelta(days=36_500),
    ),
    "MODULES": ("a list of modules", _are_names),
    "PLUGINS": ("a list of plugins, each as module:name", _are_names),
    "ALIASES": (
        "a dictionary of paths",
        lambda value: isinstance(value, dict) and _are_names([*value, *value.values()]),
    ),
}
