"""Describe the settings: a commented `gw.toml`, and its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gw_cli.settings.table import SETTINGS, Setting

HEADER: Final = """\
# Settings of gw. `gw config show` prints each value and where it comes from.
# Remove the # in front of a setting to change it."""
CONNECTION_NOTE: Final = "# Keep a connection with a password in the environment as DATABASE_URL, not in this file."


def commented_file(values: Mapping[str, str]) -> str:
    """Return a `gw.toml` that sets `values` and shows every other setting, commented out, with its default."""
    return "\n".join([HEADER, *_sections(values), ""])


def _sections(values: Mapping[str, str]) -> Iterator[str]:
    section = ""
    for setting in SETTINGS:
        if setting.section != section:
            section = setting.section
            yield f"\n# -- {section} --"
            if "." in setting.name:
                yield f"\n[{setting.name.partition('.')[0]}]"
        yield from _lines(setting, values)


def _lines(setting: Setting[Any], values: Mapping[str, str]) -> Iterator[str]:
    yield f"\n# {setting.help}"
    if setting.name == "connection":
        yield CONNECTION_NOTE
    key = setting.name.rpartition(".")[2]
    given = values.get(setting.name)
    yield f"# {key} = {toml_value(setting)}" if given is None else f"{key} = {json.dumps(given)}"


def toml_value(setting: Setting[Any]) -> str:
    """Return the default as TOML; without a default, a placeholder."""
    kind, default = setting.kind, setting.default
    if kind.is_switch or (isinstance(default, int | float) and not kind.is_list):
        return kind.write(default) or "false"
    if kind.is_list:
        return json.dumps(list(default))
    return "{}" if kind.schema.get("type") == "object" else json.dumps(kind.write(default) or kind.metavar)


def json_schema() -> dict[str, object]:
    """Return the JSON Schema of `gw.toml`."""
    properties: dict[str, Any] = {}
    for setting in SETTINGS:
        table, _, key = setting.name.rpartition(".")
        place = properties if not table else properties.setdefault(table, _object({}))["properties"]
        place[key] = {**setting.kind.schema, "description": setting.help_with_default}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "gw.toml", **_object(properties)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}
