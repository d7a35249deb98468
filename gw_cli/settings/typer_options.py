"""Options that a command takes together as one value, such as those of its settings as a `Configuration`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
import typer

from gw_cli import stderr
from gw_cli.settings.resolve import resolve_for_process
from gw_cli.settings.table import SETTINGS, Setting

Config = Annotated[
    str | None,
    typer.Option("--config", "-C", metavar="FILE", help="Configuration file"),
]


class OptionGroup(msgspec.Struct, frozen=True):
    """Options, annotated as Typer reads them, and the function that makes one value of theirs.

    A parameter of a command has them if its annotation is `Annotated` with the group.
    """

    options: Mapping[str, Any]
    make: Callable[..., Any]

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the options as parameters; one that is not given is False for a switch, and else None."""
        for name, kind in self.options.items():
            default = False if kind.__origin__ is bool else None
            yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def with_groups(command: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command's function with the options of its groups instead of their values.

    A parameter `configuration` has the options of the command's settings.
    """
    parameters = inspect.signature(function, eval_str=True).parameters
    groups = {name: _group(command, each) for name, each in parameters.items()}

    def call(**values: Any) -> Any:
        for name, group in groups.items():
            if group is not None:
                values[name] = group.make(**{each: values.pop(each) for each in group.options})
        return function(**values)

    ordered = sorted(parameters, key=lambda name: (groups[name] is not None, name == "configuration"))
    expanded = [option for name in ordered for option in _expanded(parameters[name], groups[name])]
    call.__doc__ = function.__doc__
    # Typer reads both.
    call.__signature__ = inspect.Signature(expanded)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in expanded}
    return call


def _group(command: str, parameter: inspect.Parameter) -> OptionGroup | None:
    if parameter.name == "configuration":
        return _settings(command)
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return next((each for each in metadata if isinstance(each, OptionGroup)), None)


def _expanded(parameter: inspect.Parameter, group: OptionGroup | None) -> Iterator[inspect.Parameter]:
    return iter([parameter.replace(kind=parameter.KEYWORD_ONLY)]) if group is None else group.parameters()


def _settings(command: str) -> OptionGroup:
    """Return the options of a command's settings, and `--config`."""
    settings = [each for each in SETTINGS if command in each.commands]

    def configuration(config: str | None, **values: Any) -> Any:
        return resolve_for_process(config, {each.name: values[each.keyword] for each in settings}, report=stderr.note)

    return OptionGroup({**{each.keyword: _option(each) for each in settings}, "config": Config}, configuration)


def _option(setting: Setting[Any]) -> Any:
    """Return the annotation of a setting's option; its value is None unless the command line gives one."""
    option: Any = typer.Option(
        f"{setting.flag}/--no-{setting.flag[2:]}" if setting.kind.is_switch else setting.flag,
        *setting.flags,
        help=setting.help_with_default,
        metavar=setting.kind.metavar or None,
        rich_help_panel=setting.section,
    )
    if setting.kind.is_switch:
        return Annotated[bool | None, option]
    return Annotated[list[str] | None, option] if setting.kind.is_list else Annotated[str | None, option]
