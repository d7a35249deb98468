"""A program that never closes its client exits immediately, with nothing on stderr."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.queue_fixture import DEADLINE
from support.stall_clock import StallClock

MODULE_LEVEL = """
import sys
from gw_core import Client
client = Client(sys.argv[1])
client.add("mail")
print("added", flush=True)
"""

IN_A_THREAD = """
import sys, threading
from gw_core import Client
client = Client(sys.argv[1])
threads = [threading.Thread(target=client.add, args=("mail",)) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print("added", flush=True)
"""

SECONDS = 15.0
"""Below the 20 s that the pool's own end takes on Python 3.13, and above what a busy machine needs."""


@pytest.mark.parametrize("program", [MODULE_LEVEL, IN_A_THREAD], ids=["at module level", "used by threads"])
def test_a_client_that_is_not_closed_does_not_delay_the_end(database_url: str, program: str) -> None:
    command = [sys.executable, "-c", program, database_url]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "added\n"
        with StallClock(process.pid) as watch:
            _, errors = process.communicate(timeout=DEADLINE)

    assert (process.returncode, errors) == (0, "")
    assert watch.seconds < SECONDS
