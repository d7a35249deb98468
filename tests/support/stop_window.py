"""`gw` with another time in which further signals repeat the first one, so that no test depends on the clock."""

from __future__ import annotations

import sys

ALWAYS = float("inf")
NEVER = 0.0


def gw_with_repeats(seconds: float) -> list[str]:
    """Return the command of the program in which signals repeat the first one for this long."""
    return [
        sys.executable,
        "-c",
        f"from gw_core.domain.rules import stop_signals; stop_signals.REPEAT_SECONDS = float('{seconds}')\n"
        "from gw_cli.main import main; main()",
    ]
