"""What the tests of the core share."""

from __future__ import annotations

from support.program_fixtures import relaxed_timeouts as relaxed_timeouts
