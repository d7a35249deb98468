"""The options that choose how a command prints its records."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from gw_cli.command import Json
from gw_cli.output import Layout
from gw_core.errors import InvalidInputError

PANEL: Final = "Output"

Table = Annotated[
    bool, typer.Option("--table", help="Print a table, also into a pipe", rich_help_panel=PANEL, show_default=False)
]
Tsv = Annotated[
    bool,
    typer.Option("--tsv", help="Print tab-separated lines, also on a terminal", rich_help_panel=PANEL),
]
Wide = Annotated[
    bool, typer.Option("--wide", help="Print a table that is not cut to the terminal", rich_help_panel=PANEL)
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="KEY,...", help="Columns, named like the JSON keys", rich_help_panel=PANEL),
]
_OPTIONS: Final = {"as_json": Json, "as_table": Table, "as_tsv": Tsv, "wide": Wide, "columns": Columns}


def with_layout(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a `Layout`; the function takes it as the keyword `layout`."""
    kept = [each for each in inspect.signature(function, eval_str=True).parameters.values() if each.name != "layout"]

    def call(*arguments: Any, **values: Any) -> Any:
        chosen = {name: values.pop(name, None) for name in _OPTIONS}
        return function(*arguments, layout=_layout(**chosen), **values)

    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None if name == "columns" else False, annotation=kind
        )
        for name, kind in _OPTIONS.items()
    ]
    call.__doc__ = function.__doc__
    call.__signature__ = inspect.Signature([*kept, *options])  # type: ignore[attr-defined]
    return call


def _layout(*, as_json: bool, as_table: bool, as_tsv: bool, wide: bool, columns: str | None) -> Layout:
    as_table = as_table or (wide and not (as_json or as_tsv))
    chosen = [name for name, is_chosen in (("json", as_json), ("table", as_table), ("tsv", as_tsv)) if is_chosen]
    if len(chosen) > 1 or (wide and not as_table):
        raise InvalidInputError("--json, --tsv and --table or --wide contradict each other; give one of them")
    named = tuple(each.strip() for each in (columns or "").split(",") if each.strip())
    if columns is not None and not named:
        raise InvalidInputError("--columns is empty; give keys such as id,task,run_at")
    return Layout(form=chosen[0] if chosen else "", columns=named, is_wide=wide)
