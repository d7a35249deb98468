"""How much a run tests: `GW_TEST_PROFILE` is `dev` (the default), `ci` (set by `CI`) or `nightly`.

Profiles change how many examples a property gets, how long state machines run, how many sizes the console is drawn in,
and whether tests marked `slow` run.
"""

from __future__ import annotations

import os
from typing import Final, Literal, cast

from hypothesis import HealthCheck, settings

Profile = Literal["dev", "ci", "nightly"]

PROFILE: Final = cast(Profile, os.environ.get("GW_TEST_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))
SHARES: Final = {"dev": 0.25, "ci": 0.25, "nightly": 20.0}
IS_NIGHTLY: Final = PROFILE == "nightly"


def scaled(number: float) -> int:
    """Return what this profile makes of a number of examples or seconds meant for `ci`."""
    return max(5, round(number * SHARES[PROFILE]))


def examples(number: int) -> settings:
    """Return settings with a quarter of this many examples; in `nightly` with 20 times as many."""
    return settings(max_examples=scaled(number), deadline=None)


def load() -> None:
    """Make the profile's settings those of all properties that ask for no others."""
    # No deadline and no health check for speed: a machine that pauses for a second does not falsify a property.
    for name in SHARES:
        settings.register_profile(
            name,
            max_examples=round(100 * SHARES[name]),
            deadline=None,
            # As in the profile of Hypothesis for build servers. `make test` without `CI` and `make nightly` try new
            # examples each time.
            derandomize=name == "ci",
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile(PROFILE)
