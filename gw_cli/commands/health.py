"""`gw health`: whether the queue answers, for probes."""

from __future__ import annotations

from gw_cli import output
from gw_cli.command import Json, command
from gw_cli.connect import open_client
from gw_cli.settings import Configuration


@command("health")
def health(
    configuration: Configuration,
    as_json: Json = False,
) -> None:
    """Check that the queue responds, for probes.

    Exits with 0 if it does, otherwise with the reason: 3 unreachable, 4 access denied, 5 no schema.
    """
    with open_client(configuration) as client:
        took = round(client.doctor.health_check().total_seconds() * 1000, 2)
    record = {"healthy": True, "milliseconds": took}
    output.answer(f"The queue responded in {took} ms", plain=str(took), record=record, as_json=as_json)
