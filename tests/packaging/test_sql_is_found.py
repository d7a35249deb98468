"""The SQL files are found from a wheel, from an editable install and from a checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from support.project_files import project_files

CHECKOUT = Path(__file__).parents[2]
SCRIPT = """
import json
from pathlib import Path
from gw_core.postgres.connection.statements import query, sql_folder
folder = Path(str(sql_folder()))
files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.sql"))
print(json.dumps({"folder": str(folder), "files": files, "statement": query("add_job", "jobs")}))
"""


@pytest.fixture(scope="module")
def shipped() -> list[str]:
    folder = CHECKOUT / "sql"
    return [str(path.relative_to(folder)) for path in project_files(folder, "*.sql")]


def build_wheel(folder: Path) -> Path:
    """Build the wheel the way pip asks for it."""
    program = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    command = [sys.executable, "-c", program, str(folder)]
    answer = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return folder / answer.stdout.split()[-1]


def install(wheel: Path, environment: Path) -> Path:
    """Install a wheel into a new environment; what it depends on comes from the one the tests run in."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    return python


def run(command: list[str], *, path: str = sysconfig.get_path("purelib")) -> str:
    """Run a program somewhere else than in the checkout, which must not be found by chance."""
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=True).stdout


def test_a_wheel_installs_the_packages_their_sql_and_the_command(tmp_path: Path, shipped: list[str]) -> None:
    wheel = build_wheel(tmp_path)
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"gw_core", "gw_cli", "gw_tui"}
    assert {f"{package}/py.typed" for package in ("gw_core", "gw_cli", "gw_tui")} <= set(names)
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]

    python = install(wheel, tmp_path / "a clean environment" / "venv")
    seen = json.loads(run([str(python), "-c", SCRIPT]))
    assert Path(seen["folder"]).is_relative_to(python.parents[1])
    assert seen["files"] == shipped
    assert '"jobs"' in seen["statement"]
    version = run([str(python), "-c", "import gw_core; print(gw_core.__version__)"]).strip()
    assert run([str(python.with_name("gw")), "--version"]).strip() == f"gw {version}"


def is_editable_here() -> bool:
    try:
        origin = distribution("graphile-worker").read_text("direct_url.json")
    except PackageNotFoundError:
        return False
    return bool(json.loads(origin or "{}").get("dir_info", {}).get("editable"))


def test_an_editable_install_uses_the_sql_of_the_checkout(shipped: list[str]) -> None:
    if not is_editable_here():
        assert "CI" not in os.environ, "make test installs this checkout, editable, and so must CI"
        pytest.skip("the environment of these tests has no editable install")

    seen = json.loads(run([sys.executable, "-c", SCRIPT], path=""))

    assert Path(seen["folder"]) == CHECKOUT / "sql"
    assert seen["files"] == shipped


def test_a_checkout_uses_its_own_sql(shipped: list[str]) -> None:
    path = f"{CHECKOUT}{os.pathsep}{sysconfig.get_path('purelib')}"

    seen = json.loads(run([sys.executable, "-c", SCRIPT], path=path))

    assert Path(seen["folder"]) == CHECKOUT / "sql"
    assert seen["files"] == shipped
