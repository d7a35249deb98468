"""`gw config`: look at the configuration."""

from __future__ import annotations

import os

from gw_cli import configuration as c, options, output, stderr
from gw_cli.command import command, new_app
from gw_cli.connect import looked_up

KEYS = ("name", "value", "origin", "place")
COLUMNS = (
    output.Column("name", "SETTING"),
    output.Column("value", "VALUE", shrinks=True),
    output.Column("from", "FROM", shrinks=True, rank=8),
)

app = new_app()


@app.callback()
def config() -> None:
    """Look at the configuration."""


@command(app, "show")
def show(
    as_json: options.Json = False,
    config: options.Config = None,
    connection: options.Connection = None,
    schema: options.Schema = None,
) -> None:
    """Show every setting with its value and where it comes from.

    The strongest wins: a flag, the environment, the file, the default.
    """
    configuration = looked_up(config, {"connection": connection, "schema": schema})
    rows = [_record(configuration, setting) for setting in c.SETTINGS]
    output.records(rows, keys=KEYS, columns=COLUMNS, as_json=as_json)
    for variable in c.unknown_variables(os.environ):
        stderr.note(f"note: {variable} is set but is no setting of gw")


def _record(configuration: c.Configuration, setting: c.Setting[object]) -> dict[str, object]:
    origin = configuration.origin(setting)
    return {
        "name": setting.name,
        "value": _shown(setting, configuration[setting]),
        "origin": origin.kind,
        "place": origin.place or None,
        "from": str(origin),
    }


def _shown(setting: c.Setting[object], value: object) -> str | None:
    if value is None:
        return None
    if setting in (c.CONNECTION, c.LISTEN_CONNECTION):
        from gw_core.operations import described  # late: it brings the database driver; it leaves the password out

        shown: str = described(str(value))
        return shown
    return setting.write(value)
