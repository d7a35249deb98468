"""The README's quick start works as written: from the wheel, in an empty environment, for an ordinary user."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.timeout(600)]

CHECKOUT = Path(__file__).parents[2]
ORDINARY_USER = 65534
DEADLINE = 120
EXPECTED = "Hello, Bobby Tables"

Run = Callable[..., "subprocess.Popen[str]"]


def quick_start() -> list[str]:
    """Return the shell blocks below the heading, in their order."""
    section = (CHECKOUT / "README.md").read_text().partition("## Quick start\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that GW_WHEEL names, or one that is built now."""
    if "GW_WHEEL" in os.environ:
        return Path(os.environ["GW_WHEEL"])
    folder = tmp_path_factory.mktemp("wheel")
    program = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, folder], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return folder / done.stdout.split()[-1]


@pytest.fixture
def user() -> dict[str, Any]:
    """What makes a process one of an ordinary user."""
    return {"user": ORDINARY_USER, "group": ORDINARY_USER, "extra_groups": []} if os.geteuid() == 0 else {}


@pytest.fixture
def folder(user: dict[str, Any]) -> Iterator[Path]:
    """A home with a space in its name, which an ordinary user owns; pytest closes its own folders to others."""
    with tempfile.TemporaryDirectory(prefix="my projects ") as name:
        if user:
            os.chown(name, ORDINARY_USER, ORDINARY_USER)
        yield Path(name)


@pytest.fixture
def shell(folder: Path, wheel: Path, user: dict[str, Any]) -> Iterator[Run]:
    """Run lines in a shell with the environment of a fresh login and an empty virtual environment."""
    environment = {"HOME": str(folder), "PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}", "TERM": "dumb"}
    running: list[subprocess.Popen[str]] = []

    def run(lines: str, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            ["sh", "-ec", lines],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **{"cwd": folder, **user, **options},
        )
        running.append(process)
        return process

    (folder / wheel.name).write_bytes(wheel.read_bytes())
    python = next((each for each in pythons() if run(f"'{each}' -c ''").wait() == 0), None)
    assert python, "no Python that an ordinary user can run; install python3 of the system"
    ended(run(f"'{python}' -m venv --without-pip venv"))
    add_pip(folder / "venv")
    yield run
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def pythons() -> list[str]:
    """Return the interpreter of the tests, which may be in root's home, and that of the system."""
    return [os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"]


def add_pip(environment: Path) -> None:
    """Install pip into the environment from outside: Debian keeps `ensurepip` in a package of its own."""
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", "pip"], check=True)
    if os.geteuid() == 0:
        for path in [environment, *environment.rglob("*")]:
            os.chown(path, ORDINARY_USER, ORDINARY_USER, follow_symlinks=False)


def ended(process: subprocess.Popen[str]) -> int:
    """Wait for the end; show what the process printed if it failed."""
    printed, _ = process.communicate(timeout=DEADLINE * 3)
    assert process.returncode == 0, printed
    return process.returncode


def test_the_quick_start_works_from_the_wheel(shell: Run, folder: Path, wheel: Path) -> None:
    install, start, add = quick_start()
    assert install.count("'graphile-worker[embedded,watch]'") == 1
    ended(shell(install.replace("'graphile-worker[", f"'{folder / wheel.name}[")))

    developing = shell(start)
    assert developing.stdout is not None
    seen = read_until(developing, "started with")
    ended(shell(add, cwd=folder / "shop"))
    seen += read_until(developing, EXPECTED)
    os.killpg(developing.pid, signal.SIGINT)
    rest, _ = developing.communicate(timeout=DEADLINE)

    assert EXPECTED in seen
    assert "Traceback" not in seen + rest


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Return what the process prints up to the line with these words."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError(f"it ended without {words!r}:\n{''.join(lines)}")


def test_the_package_brings_no_more_than_it_needs(shell: Run, folder: Path, wheel: Path) -> None:
    ended(shell(f"venv/bin/pip install -q '{folder / wheel.name}'"))
    listed = shell("venv/bin/pip list --format freeze --exclude pip --exclude setuptools").communicate()[0]
    packages = {line.partition("==")[0].lower().replace("_", "-") for line in listed.splitlines()}

    assert {"pydantic", "pydantic-core", "django", "sentry-sdk", "opentelemetry-api", "watchfiles"} & packages == set()
    assert "graphile-worker @ " in listed or "graphile-worker" in packages
    assert len(packages) <= 20, sorted(packages)


def test_without_the_console_nothing_imports_it(shell: Run, folder: Path, wheel: Path) -> None:
    """A program that adds and runs jobs, and every command but `gw tui`, does without textual and rich."""
    ended(shell(f"venv/bin/pip install -q '{folder / wheel.name}'"))
    ended(shell("venv/bin/pip uninstall -q -y textual"))

    ended(shell("venv/bin/python -c 'from gw_core import Client, Runner, TaskRegistry; import gw_core.testing'"))
    for line in (
        "graphile-worker --version",
        "gw --help",
        "gw run --help",
        "gw completion bash",
        "gw config show",
        "gw init shop",
    ):
        ended(shell(line))
