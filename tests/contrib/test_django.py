"""The contract of Django's tasks, the command, the migration and the admin page, in a Django project of their own.

Django is set up once for each process, so the project runs in a pytest of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytest.importorskip("django")
if sys.version_info < (3, 12):
    pytest.importorskip("django_tasks")

pytestmark = pytest.mark.timeout(900)

PROJECT = Path(__file__).with_name("django_project")


FILES = sorted(path.name for path in PROJECT.glob("check_*.py"))
# The other files run with the defaults of Django.
KEEPING_CONNECTIONS = {
    "for ever": {"TEST_CONN_MAX_AGE": "null"},
    "for a minute": {"TEST_CONN_MAX_AGE": "60"},
    "in a pool": {"TEST_POOL": '{"min_size": 1, "max_size": 2}'},
}


ADMIN, STARTING = ["check_admin.py"], ["check_development.py", "check_project.py"]
"""The longest, and those that start programs. Each group sets Django up, which takes seconds."""
REST = sorted({*FILES} - {*ADMIN, *STARTING})


@pytest.mark.parametrize("files", [ADMIN, STARTING, REST], ids=["admin", "programs", "the rest"])
def test_django(files: list[str], empty_database_url: str) -> None:
    run_project(empty_database_url, *files)


@pytest.mark.slow
@pytest.mark.parametrize("settings", KEEPING_CONNECTIONS.values(), ids=KEEPING_CONNECTIONS)
def test_connections_of_django_are_kept(settings: dict[str, str], empty_database_url: str) -> None:
    run_project(empty_database_url, "check_connections.py", **settings)


@pytest.mark.slow
def test_django_tasks_drain_at_four_fifths_of_the_speed_of_plain_tasks(empty_database_url: str) -> None:
    run_project(empty_database_url, "measure_drain.py")


DJANGOS_SETTINGS = """
from settings import DATABASES, GRAPHILE
SECRET_KEY = "tests"
USE_TZ = False
INSTALLED_APPS = ["django.contrib.contenttypes", "gw_core.contrib.django", "tasks"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
TASKS = {"default": {"BACKEND": GRAPHILE, "QUEUES": ["default", "queue_1"]}}
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 12), reason="Django 5.2 has no tasks, and no tests of them")
def test_djangos_own_tests_of_tasks_pass_with_gw_as_the_default_backend(
    empty_database_url: str, tmp_path: Path
) -> None:
    import django

    source = f"django=={django.get_version()}"
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "django", source]
    if subprocess.run(download, cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("Django's sources, which have its tests, cannot be downloaded")
    [archive] = tmp_path.glob("[dD]jango-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (tmp_path / "djangos_settings.py").write_text(DJANGOS_SETTINGS)
    folders = (tmp_path, tmp_path / archive.name.removesuffix(".tar.gz") / "tests", PROJECT)
    variables = {
        "DATABASE_URL": empty_database_url,
        "DJANGO_SETTINGS_MODULE": "djangos_settings",
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "django", "test", "tasks", "--noinput"],
        cwd=tmp_path,
        env={**os.environ, **variables},
        text=True,
        capture_output=True,
        timeout=600,
    )

    assert done.returncode == 0, done.stderr[-8000:]
    assert int(re.findall(r"Ran (\d+) tests", done.stderr)[0]) >= 76


def run_project(database_url: str, *files: str, **variables: str) -> None:
    environment = {**os.environ, "DATABASE_URL": database_url, "PYTHONPATH": str(PROJECT), **variables}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:django",
            "--confcutdir",
            ".",
            *files,
        ],
        cwd=PROJECT,
        env=environment,
        text=True,
        capture_output=True,
        timeout=800,
    )

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
