"""`gw health`: whether the queue answers, for probes."""

from __future__ import annotations

from gw_cli import options, output
from gw_cli.command import command, new_app
from gw_cli.connect import configured, open_client

app = new_app()


@command(app, "health")
def health(
    as_json: options.Json = False,
    connection: options.Connection = None,
    schema: options.Schema = None,
    pg_bin: options.PgBin = None,
    config: options.Config = None,
) -> None:
    """Say whether the queue answers, for probes.

    Exits with 0 when it does; else with what keeps it from answering: 3 unreachable, 4 refused, 5 no schema.
    """
    configuration = configured(config, connection=connection, schema=schema, pg_bin=pg_bin)
    with open_client(configuration) as client:
        took = round(client.doctor.pulse().total_seconds() * 1000, 2)
    record = {"healthy": True, "milliseconds": took}
    output.answer(f"The queue answers in {took} ms", plain=str(took), record=record, as_json=as_json)
