"""Do nothing with a payload of any size but remember which jobs ran; the list is written when the process ends."""

from __future__ import annotations

import atexit
import os
from array import array
from pathlib import Path
from typing import Any

RAN = array("I")


def run(payload: dict[str, Any]) -> None:
    """Remember the job's number; the text beside it has been decoded as well."""
    RAN.append(payload["n"])


@atexit.register
def write() -> None:
    """Leave the numbers beside those of the task `noop`, which is loaded as well."""
    Path(os.environ["BENCH_RAN"], f"ran-sized-{os.getpid()}").write_bytes(RAN.tobytes())
