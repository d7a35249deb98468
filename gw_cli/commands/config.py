"""`gw config`: print and describe the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gw_cli import output, stderr
from gw_cli.arguments import one_of
from gw_cli.command import Printed, command
from gw_cli.settings import Configuration, table
from gw_cli.settings.documents import json_schema
from gw_cli.settings.resolve import unknown_variables

SHOWN = output.Shape(
    (
        output.Column("name", "SETTING"),
        output.Column("value", "VALUE", shrinks=True),
        output.Column("origin"),
        output.Column("location"),
        output.Column("from", "FROM", shrinks=True, rank=8, shown=True),
    )
)


@command("config show")
def show(
    configuration: Configuration,
    layout: Printed,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="Only the settings of this command")
    ] = None,
) -> None:
    """Show every setting with its value and origin.

    A flag overrides the environment, which overrides the file, which overrides the default.
    """
    rows = [_record(configuration, setting) for setting in _settings_of(" ".join(words or ()))]
    layout.show(rows, SHOWN)
    for variable in unknown_variables(os.environ):
        stderr.note(f"note: {variable} is set but is not a setting of gw")


@command("config schema")
def schema() -> None:
    """Print the JSON Schema of gw.toml, for editors."""
    output.line(output.to_json(json_schema()))


def _settings_of(name: str) -> list[table.Setting[Any]]:
    """Return the settings that a command uses, or all of them."""
    used = sorted({each for setting in table.SETTINGS for each in setting.commands})
    one_of("COMMAND", name or None, used)
    return [each for each in table.SETTINGS if not name or name in each.commands]


def _record(configuration: Configuration, setting: table.Setting[Any]) -> dict[str, object]:
    origin = configuration.origin(setting)
    return {
        "name": setting.name,
        "value": _shown(setting, configuration[setting]),
        "origin": origin.kind,
        "location": origin.location or None,
        "from": str(origin),
    }


def _shown(setting: table.Setting[Any], value: object) -> str | None:
    if value is None and setting is not table.EXECUTABLE_ENV:
        return None
    if setting.secret:
        from gw_core.front_ends import described

        if isinstance(value, Mapping):  # databases by name
            return ", ".join(f"{name}: {described(each)}" for name, each in value.items()) or None
        shown: str = described(str(value))
        return shown
    return setting.kind.write(value)
