"""Run a command once for each shard: one of several databases that hold queues of the same application."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from gw_cli import output, stderr
from gw_cli.exit_codes import ExitCode, verdict
from gw_cli.settings import Configuration, table
from gw_core.errors import GraphileWorkerError, InvalidInputError

Function = Callable[..., Any]


def shards_of(configuration: Configuration) -> dict[str, Configuration]:
    """Return the configuration of each shard by name; nothing without shards."""
    shards = configuration[table.SHARDS]
    if not shards:
        return {}
    if configuration.origin(table.CONNECTION).kind == "flag":
        if configuration.origin(table.SHARDS).kind != "flag":
            return {}
        raise InvalidInputError("--connection and --shard were both given; give one of them")
    return {name: configuration.derive(table.CONNECTION, each) for name, each in shards.items()}


def for_each_shard(*without: str) -> Callable[[Function], Function]:
    """Return the decorator that runs a command for each shard, and labels what it prints.

    A shard that cannot be reached does not stop the others. The options `without` need a single database.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(configuration: Configuration, **values: Any) -> Any:
            shards = shards_of(configuration)
            if not shards:
                return function(configuration, **values)
            _reject(without, values)
            return run_on_each({name: functools.partial(function, each, **values) for name, each in shards.items()})

        return call

    return decorate


def _reject(options: Collection[str], values: dict[str, Any]) -> None:
    for name in options:
        if values.get(name):
            raise InvalidInputError(f"--{name} needs a single database; name one with --connection instead of shards")


def run_on_each(commands: Mapping[str, Callable[[], Any]]) -> int:
    """Run a command on each of several databases, label what it prints, and return the worst exit code."""
    codes = []
    with output.of_shards() as printed:
        for name, command in commands.items():
            printed.begin(name)
            codes.append(_run_on(name, command))
    return max(codes)


def _run_on(name: str, command: Callable[[], Any]) -> int:
    """Run a command on one of several databases; its errors are reported with the name."""
    try:
        return command() or ExitCode.OK
    except GraphileWorkerError as error:
        stderr.error(f"shard {name}: {error}")
        return verdict(error)
