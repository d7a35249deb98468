"""The image of examples/deploy is built and runs: by buildah, on a base of Debian's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.postgres_server import Server

from gw_core import Client

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
PROGRAMS = ("buildah", "debootstrap")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
SETTINGS_OF_PIP = Path("/etc/pip.conf")

Run = Callable[..., str]


class Builder:
    """Buildah with a storage of its own, without a daemon."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *arguments: str, code: int = 0) -> str:
        storage = f"--storage-driver=vfs --root={self._folder}/root --runroot={self._folder}/run".split()
        command = ["buildah", *storage, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == code, done.stderr
        return done.stdout.strip()

    def build(self, *arguments: str) -> None:
        """Build an image; its steps use the network and pip's settings of this machine."""
        settings = [f"--volume={SETTINGS_OF_PIP}:{SETTINGS_OF_PIP}:ro"] * SETTINGS_OF_PIP.exists()
        self("bud", "-q", "--isolation", "chroot", "--network", "host", *settings, *arguments)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty root file system of Debian with its Python."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"building the image needs root and, on Debian: apt-get install {' '.join(PROGRAMS)}")
    folder = tmp_path_factory.mktemp("base")
    packages = "--include=python3,python3-venv,ca-certificates"
    subprocess.run(["debootstrap", "--variant=minbase", packages, "bookworm", folder / "debian"], check=True)
    # Where the registries have certificates of their own, the image needs them to reach PyPI.
    shutil.copy(CERTIFICATES, f"{folder}/debian{CERTIFICATES}")
    subprocess.run(["tar", "-C", folder / "debian", "-cf", folder / "debian.tar", "."], check=True)
    shutil.rmtree(folder / "debian")
    (folder / "Dockerfile").write_text("FROM scratch\nADD debian.tar /\nENV PATH=/usr/sbin:/usr/bin\n")
    return folder


@pytest.fixture(scope="module")
def container(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """What runs a command in a container of the image."""
    builder = Builder(tmp_path_factory.mktemp("storage"))
    builder.build("--tag", "localhost/base", str(base))
    builder.build(
        "--build-arg", "BASE=localhost/base", "--tag", "localhost/worker", "-f", "examples/deploy/Dockerfile", "."
    )
    name = builder("from", "localhost/worker")

    def run(*command: str, code: int = 0) -> str:
        return builder("run", "--isolation", "chroot", "--network", "host", name, "--", *command, code=code)

    yield run
    builder("rm", name)
    builder("rmi", "--all", "--force")


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback, which a container reaches."""
    with Server() as server:
        yield server


def test_the_image_runs_jobs_as_an_ordinary_user(container: Run, server: Server) -> None:
    assert container("id", "-u") == "10001"
    container("touch", "/opt/gw/file", code=1)

    for command in (
        ("migrate",),
        ("add", "send_receipt", "--payload", '{"order": 17}'),
        ("run", "--once", "--strict"),
    ):
        container("gw", *command, "--connection", server.url)

    with Client(server.url) as client:
        assert client.jobs.count().jobs == 0
        assert [report.name for report in client.tasks.list()] == ["send_receipt"]
