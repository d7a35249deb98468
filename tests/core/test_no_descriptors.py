"""A task that uses up all file descriptors: the database cannot be reached, and that is all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.queue_fixture import DEADLINE, QueueFixture

SCRIPT = """
import os, resource, sys
from gw_core.domain.errors import DatabaseUnavailableError
from gw_core.postgres.connection.database import Database

database = Database(sys.argv[1], notice_pooler=True)
database.connect("before").close()  # what is imported late is there
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = []
try:
    while True:
        files.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
for _ in range(int(sys.argv[2])):
    os.close(files.pop())
try:
    database.connect("now")
except DatabaseUnavailableError as error:
    print("unavailable")
for file in files:
    os.close(file)
database.connect("after").close()
"""


@pytest.mark.parametrize("free", [0, 1])
def test_without_descriptors_the_database_is_unavailable_until_there_are_some_again(
    site: QueueFixture, free: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, site.url, str(free)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "unavailable\n"), done.stderr
