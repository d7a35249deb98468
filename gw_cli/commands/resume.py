"""`gw resume`: let jobs start again that a pause has stopped."""

from __future__ import annotations

from gw_cli.command import Json, command
from gw_cli.commands.pause import Targets, report
from gw_cli.connect import open_to_change
from gw_cli.exit_codes import NothingMatchedError
from gw_cli.sanitize import quoted
from gw_cli.settings import Configuration


@command("resume")
def resume(configuration: Configuration, targets: Targets, as_json: Json = False) -> int:
    """Resume what is paused.

    Workers claim its jobs again immediately. A queue that a job has kept running through the pause stays locked until
    that job ends.
    """
    with open_to_change(configuration) as client:
        result = client.pauses.resume(*targets)
    if not result.changed:
        raise NothingMatchedError(f"{', '.join(map(quoted, targets))} is not paused; gw pauses lists what is")
    return report(targets, "resumed", result, as_json=as_json)
