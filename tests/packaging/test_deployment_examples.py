"""The files of examples/deploy: that the tools they are written for accept them, and that they fit the program."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.project_files import project_files

from gw_core import WorkerSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples" / "deploy"


def gw(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gw_cli", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def documents(name: str) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def container(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    document = next(each for each in documents("kubernetes.yaml") if each["kind"] == kind)
    pod = document["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def options_of_run() -> str:
    return gw("run", "--help").stdout


RUN = re.compile(r"""\bgw\s+run\b(?P<line>[^`\n]*)|\[\s*"?run"?(?P<list>(?:,[^\]]*)?)\]""")


def worker_commands() -> list[tuple[Path, list[str]]]:
    """The options of every `gw run` in an example, a deployment file or the guide."""
    files = [ROOT / "README.md", *(ROOT / "docs" / "guide").glob("*.md"), *project_files(ROOT / "examples")]
    return [
        (path, shlex.split(re.sub(r"[,\"]", " ", found["line"] or found["list"] or ""), comments=True))
        for path in files
        for found in RUN.finditer(path.read_text("utf-8"))
    ]


@pytest.fixture(scope="module")
def help_of_run() -> str:
    return options_of_run()


UNITS = {"shop-worker.service": "deploying.md", "django-worker.service": "django-workers.md"}
"""The units of systemd, with the pages that print them."""

COMPOSE_FILES = ("compose.yaml", "django-compose.yaml")


@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_unit(name: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / name
    text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/sh", (DEPLOY / name).read_text())
    unit.write_text(text.replace("User=shop", "User=root"))

    verified = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)

    # It reads units of this machine as well, and complains about those.
    assert [line for line in verified.stderr.splitlines() if unit.name in line or str(tmp_path) in line] == []


@pytest.mark.parametrize(("name", "page"), UNITS.items())
def test_the_guide_prints_the_unit_as_it_is(name: str, page: str) -> None:
    assert f"```ini\n{(DEPLOY / name).read_text()}```" in (ROOT / "docs" / "guide" / page).read_text()


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_does_not_restart_after_errors_that_a_restart_cannot_fix(name: str) -> None:
    [codes] = re.findall(r"RestartPreventExitStatus=(.*)", (DEPLOY / name).read_text())

    # Wrong input, access denied, no schema, no tasks, a breaking migration: see docs/reference/exit-codes.md.
    assert {int(code) for code in codes.split()} == {2, 4, 5, 8, 57}


def test_the_compose_file_of_django_has_the_workers_options(help_of_run: str) -> None:
    [compose] = documents("django-compose.yaml")
    services = compose["services"]
    command = services["worker"]["command"]

    assert command[:4] == ["python", "manage.py", "gw", "run"]
    assert [word for word in command if word.startswith("--") and word not in help_of_run] == []
    assert services["worker"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert services["migrate"]["command"] == ["python", "manage.py", "migrate"]


def test_everything_stops_later_than_the_default_grace_period() -> None:
    grace_period = WorkerSettings().grace_period.total_seconds()
    for name in UNITS:
        [of_systemd] = re.findall(r"TimeoutStopSec=(\d+)", (DEPLOY / name).read_text())
        assert int(of_systemd) > grace_period + 3
    for name in COMPOSE_FILES:
        [compose] = documents(name)
        assert int(compose["services"]["worker"]["stop_grace_period"].removesuffix("s")) > grace_period + 3


def test_a_pod_is_killed_later_than_its_own_grace_period() -> None:
    pod, worker = container("Deployment")
    given = worker["args"][worker["args"].index("--grace-period") + 1]

    assert pod["terminationGracePeriodSeconds"] > int(given.removesuffix("s")) + 3


def test_manifests_and_image_use_options_that_exist(help_of_run: str) -> None:
    _, worker = container("Deployment")
    [command] = [value for name, value in instructions() if name == "CMD"]
    used = [word for word in [*worker["args"], *shlex.split(re.sub(r"[\[\],]", " ", command))] if word[:2] == "--"]

    assert [option for option in used if option not in help_of_run] == []


def test_the_manifests_run_as_an_ordinary_user_without_privileges() -> None:
    for kind in ("Job", "Deployment"):
        pod, each = container(kind)

        assert pod["securityContext"]["runAsNonRoot"] is True
        assert each["securityContext"]["allowPrivilegeEscalation"] is False
        assert each["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_image_runs_as_an_ordinary_user_and_copies_what_exists() -> None:
    last = [value for name, value in instructions() if name == "USER"][-1]
    copied = [value.split()[:-1] for name, value in instructions() if name == "COPY" and not value.startswith("--from")]

    assert int(last) > 0
    assert [source for sources in copied for source in sources if not (ROOT / source).exists()] == []


def test_the_image_has_all_that_the_package_is_built_from() -> None:
    copied = {source for name, value in instructions() if name == "COPY" for source in value.split()[:-1]}

    assert {"gw_core", "gw_cli", "gw_tui", "sql", "pyproject.toml", "README.md", "LICENSE"} <= copied


def test_every_example_recovers_the_jobs_of_dead_workers() -> None:
    found = worker_commands()
    examples = [ROOT / "README.md", *project_files(ROOT / "examples")]
    turned_off = re.compile(r"recover\s*=\s*false|no-recover|GW_RECOVER", re.IGNORECASE)

    assert {path.name for path, _ in found} >= {"Dockerfile", "kubernetes.yaml", "shop-worker.service", "deploying.md"}
    assert WorkerSettings().recover
    assert [path for path, options in found if "--no-recover" in options] == []
    assert [path for path in examples if turned_off.search(path.read_text("utf-8"))] == []


def test_every_deployed_worker_starts_only_with_all_its_tasks() -> None:
    deployed = [(path.name, options) for path, options in worker_commands() if path.parent == DEPLOY]
    # A project of Django has no task files: its workers never start without one of the modules.
    deployed = [each for each in deployed if not each[0].startswith("django-")]

    assert len(deployed) >= 3
    assert [name for name, options in deployed if "--strict" not in options] == []
