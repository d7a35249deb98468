"""The `repr` of a value shows no payload, no result and no password; this finds the types that carry them."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from functools import cache
from typing import Any

import msgspec
from rich.pretty import pretty_repr

from gw_core import Job
from gw_core.events import JobStarted

SECRET = "tok_live_4242"
PACKAGES = ("gw_core", "gw_cli", "gw_tui")

CARRIERS = {
    *("payload", "payloads", "payload_json", "result", "results", "result_json"),
    *("specs", "values", "value", "text", "password", "conninfo"),
}
"""The names of fields that carry what a repr must not show."""

CARRYING_TYPES = ("str", "Any", "object", "Json", "Spec", "Mapping", "Sequence", "bytes")

NO_SECRETS = {
    "gw_cli.settings.config_file.ConfigFile.values": "settings; passwords are masked where they are printed",
    "gw_cli.settings.resolve.Resolved.value": "a setting",
    "gw_core.domain.cron.crontab.CrontabLineError.text": "the line of a crontab that its author has to correct",
    "gw_core.selection.completion.Suggestion.text": "a filter that a person types",
    "gw_core.selection.kinds.Element.text": "a filter that a person types",
    "gw_core.selection.selection.Fragment.text": "SQL; its values are elsewhere",
    "gw_core.selection.selection.Fragment.values": "the values of a filter that a person types",
    "gw_core.selection.values.Prefix.text": "a filter that a person types",
    "gw_core.selection.values.Text.text": "a filter that a person types",
    "gw_core.postgres.schema.migrations._File.text": "SQL of a migration",
    "gw_core.domain.rules.plugins.Addition.specs": "specs, whose own repr hides their payloads",
    "gw_core.testing.assertions.Wanted.payload": "what a test expects, which its failure has to show",
    "gw_tui.rules.error_groups.ErrorGroup.text": "the message of an error",
    "gw_tui.screens.queues.QueuesQuery.text": "a filter that a person types",
    "gw_tui.widgets.table_rows.Cell.text": "a cell of a table, which is on the screen",
}


@cache
def types() -> dict[str, type]:
    """Return every struct and dataclass of the packages by its full name."""
    found: dict[str, type] = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        for info in pkgutil.walk_packages(root.__path__, f"{package}."):
            if info.name.endswith("__main__") or ".django" in info.name:  # which needs settings, and has no such type
                continue
            module = importlib.import_module(info.name)
            found |= {
                f"{info.name}.{name}": kind
                for name, kind in vars(module).items()
                if isinstance(kind, type) and kind.__module__ == info.name and fields_of(kind)
            }
    return found


def fields_of(kind: type) -> dict[str, str]:
    """Return the fields of a struct or dataclass with their annotations; empty for other classes."""
    if issubclass(kind, msgspec.Struct):
        names: list[str] = list(kind.__struct_fields__)
    elif dataclasses.is_dataclass(kind):
        names = [each.name for each in dataclasses.fields(kind)]
    else:
        return {}
    known = {
        name: str(text)
        for base in reversed(kind.__mro__)
        for name, text in vars(base).get("__annotations__", {}).items()
    }
    return {name: known.get(name, "Any") for name in names}


def carriers() -> dict[str, tuple[type, str]]:
    """Return the fields that can carry a secret, by their full names."""
    return {
        f"{name}.{field}": (kind, field)
        for name, kind in types().items()
        for field, annotation in fields_of(kind).items()
        if field in CARRIERS and any(each in annotation for each in CARRYING_TYPES)
    }


def a_value(kind: type, field: str) -> Any:
    """Return a value with the secret in this field; nothing else of it is initialized."""
    if issubclass(kind, msgspec.Struct):
        return kind(**dict.fromkeys(kind.__struct_fields__, 0) | {field: SECRET})
    made = object.__new__(kind)
    for each in dataclasses.fields(kind):
        object.__setattr__(made, each.name, SECRET if each.name == field else 0)
    return made


def shown_by(value: object) -> list[str]:
    """Return the ways of printing the value that show the secret."""
    ways = {"repr": repr(value), "str": str(value), "in a list": f"{[value]}", "Rich": pretty_repr(value)}
    return [way for way, text in ways.items() if SECRET in text]


def test_no_repr_shows_what_a_field_carries() -> None:
    shown = {name: shown_by(a_value(*where)) for name, where in carriers().items() if name not in NO_SECRETS}
    assert {name: ways for name, ways in shown.items() if ways} == {}


def test_every_exception_has_its_field() -> None:
    assert set(NO_SECRETS) - set(carriers()) == set()


def test_a_job_in_an_event_hides_its_payload() -> None:
    job = Job(7, "pay", SECRET, 1, 25, 0, 0.0, 0.0, 0.0, 0, job_key="k")
    event = JobStarted(worker_id="w", thread="t", job=job)

    assert "payload_json=..., attempts=1" in repr(event)
    assert "key='k'" in repr(event)
    assert shown_by(event) == []
