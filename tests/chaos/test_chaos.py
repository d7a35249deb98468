"""A short run of chaos: a few thousand jobs, a few seconds, a little of everything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "tests.chaos", "--json"]
SHORT = ["--jobs", "3000", "--seconds", "6", "--workers", "3", "--threshold", "4", "--no-namespace"]
FAULTS = {
    "kill": 3,
    "freeze": 1,
    "lose": 3,
    "stop": 1,
    "crash": 1,
    "failover": 1,
    "backend": 1,
    "terminate": 1,
    "lock": 1,
    "pause": 1,
    "limit": 1,
}
NONE_OF = ("doze", "cut", "swallow", "delay", "restart", "stall", "lonely")

pytestmark = [pytest.mark.once, pytest.mark.acceptance]


@pytest.mark.slow
def test_every_promise_is_kept_through_kills_crashes_and_a_failover() -> None:
    faults = [
        word for what, count in {**FAULTS, **dict.fromkeys(NONE_OF, 0)}.items() for word in (f"--{what}", str(count))
    ]
    done = subprocess.run(
        [*COMMAND, "--seed", "11", *SHORT, *faults], cwd=CHECKOUT, capture_output=True, text=True, timeout=280
    )

    assert done.returncode == 0, done.stderr + done.stdout
    report = json.loads(done.stdout)
    assert (report["broken"], report["faults"]) == ([], FAULTS)
    assert report["figures"]["adds answered"] > 2000


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 2), (signal.SIGKILL, -signal.SIGKILL)], ids=["terminated", "killed"]
)
def test_a_run_that_is_ended_leaves_nothing_behind(number: signal.Signals, code: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        run = subprocess.Popen(
            [*COMMAND, "--seconds", "200", "--no-standby", "--no-namespace"],
            cwd=CHECKOUT,
            env={**os.environ, "TMPDIR": folder},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert run.stderr is not None
        for line in run.stderr:
            if "is up" in line:
                break
        [scene] = Path(folder).iterdir()
        run.send_signal(number)
        with run.stderr:
            run.stderr.read()

        assert run.wait(120) == code
        wait_until(lambda: not scene.exists(), what="the folder to be removed")
        wait_until(lambda: not _processes_in(scene), what="the processes of the run to end")


def _processes_in(folder: Path) -> list[str]:
    """The processes that work in a folder or name it in their command."""
    lines = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if str(folder) in line]
