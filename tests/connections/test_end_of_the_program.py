"""A program that never closes its client exits immediately, with nothing on stderr."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

MODULE_LEVEL = """
import sys, time
from gw_core import Client
client = Client(sys.argv[1])
client.add("mail")
print(time.monotonic(), flush=True)
"""

IN_A_THREAD = """
import sys, threading, time
from gw_core import Client
client = Client(sys.argv[1])
threads = [threading.Thread(target=client.add, args=("mail",)) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print(time.monotonic(), flush=True)
"""

SECONDS = 4.0
"""Far below the 20 s that the pool's own end takes on Python 3.13, and above what a busy machine needs."""


@pytest.mark.parametrize("program", [MODULE_LEVEL, IN_A_THREAD], ids=["at module level", "used by threads"])
def test_a_client_that_is_not_closed_does_not_delay_the_end(database_url: str, program: str) -> None:
    command = [sys.executable, "-c", program, database_url]

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert time.monotonic() - float(done.stdout) < SECONDS
    assert done.stderr == ""
