"""A recording comes from another user: playing it takes a bounded amount of memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

HEAD = b'{"gw_tui_recording":1,"at":"2026-01-01T00:00:00Z","where":"x","schema":"y"}\n'
MAX_MEMORY = 900_000  # KiB

PLAYS = """
import sys
from pathlib import Path
from gw_core.errors import InvalidInputError
from gw_tui.data.recording import ReplaySource
try:
    ReplaySource(Path(sys.argv[1]))
except InvalidInputError as error:
    print(error)
# `ru_maxrss` would include what the process of the test used before it started this one.
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize(
    ("part", "count"),
    [
        pytest.param(b" " * 1_000_000, 600, id="one line without an end"),
        pytest.param(b'{"after":0,"ask":"x"}\n' * 10_000, 101, id="many short lines"),
        pytest.param(b'{"after":0,"ask":"x"}' + b" " * 1_000_000 + b"\n", 540, id="many long lines"),
    ],
)
def test_a_bomb_is_rejected_before_it_is_unpacked(part: bytes, count: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(HEAD) + gzip.compress(part, 1) * count)

    ran = subprocess.run(
        [sys.executable, "-c", PLAYS, str(path)], capture_output=True, text=True, timeout=200, check=True
    )

    said, memory = ran.stdout.splitlines()
    assert "is too large to play" in said
    assert int(memory) < MAX_MEMORY
