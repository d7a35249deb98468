"""Give a command the options of its settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gw_cli import stderr
from gw_cli.settings.resolve import Configuration, resolve_for_process
from gw_cli.settings.table import SETTINGS, Setting

Config = Annotated[
    str | None,
    typer.Option("--config", "-C", metavar="FILE", help="Configuration file", show_default=False),
]


def with_settings(command: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that adds the options of a command's settings, and `--config`, to a function.

    The function takes a `Configuration` as its first argument, and its own options as keywords.
    """
    settings = [each for each in SETTINGS if command in each.commands]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()

        def call(config: str | None = None, **values: Any) -> Any:
            flags = {each.name: values.pop(each.keyword, None) for each in settings}
            configuration: Configuration = resolve_for_process(config, flags, report=stderr.note)
            return function(configuration, **values)

        parameters = [
            *(each.replace(kind=each.KEYWORD_ONLY) for each in own),
            *(_parameter(each.keyword, _option(each)) for each in settings),
            _parameter("config", Config),
        ]
        call.__doc__ = function.__doc__
        # Typer reads both.
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        return call

    return decorate


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _option(setting: Setting[Any]) -> Any:
    """Return the annotation of a setting's option; its value is None unless the command line gives one."""
    option: Any = typer.Option(
        *_spellings(setting),
        help=setting.help_with_default,
        metavar=setting.kind.metavar or None,
        show_default=False,
        rich_help_panel=setting.section,
    )
    if setting.kind.is_switch:
        return Annotated[bool | None, option]
    return Annotated[list[str] | None, option] if setting.kind.is_list else Annotated[str | None, option]


def _spellings(setting: Setting[Any]) -> tuple[str, ...]:
    long = f"{setting.flag}/--no-{setting.flag[2:]}" if setting.kind.is_switch else setting.flag
    return (long, *setting.flags)
