"""Records of changes name the user and the machine."""

from __future__ import annotations

import os
import socket

import pytest
from support.task_builders import run_python

SCRIPT = """
import os
from gw_core.front_ends import operator_name
for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
    os.environ.pop(name, None)
{before}
print(operator_name())
"""


def name_after(before: str) -> str:
    ended = run_python(SCRIPT.format(before=before))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_an_operator_is_a_user_on_a_machine() -> None:
    assert name_after("os.environ['LOGNAME'] = 'anna'") == f"anna@{socket.gethostname()}"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without a name")
def test_a_user_without_a_name_is_a_number() -> None:
    assert name_after("operator_name(); os.setuid(54_321)") == f"54321@{socket.gethostname()}"
