"""The contract of Django's tasks, the command, the migration and the admin page, in a Django project of their own.

Django is set up once for each process, so each file of the project runs in a pytest of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("django")
if sys.version_info < (3, 12):
    pytest.importorskip("django_tasks")

PROJECT = Path(__file__).with_name("django_project")


@pytest.mark.parametrize("file", sorted(path.name for path in PROJECT.glob("check_*.py")))
def test_django(file: str, empty_database_url: str) -> None:
    environment = {**os.environ, "DATABASE_URL": empty_database_url, "PYTHONPATH": str(PROJECT)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:django", "--confcutdir", ".", file],
        cwd=PROJECT,
        env=environment,
        text=True,
        capture_output=True,
        timeout=200,
    )

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
