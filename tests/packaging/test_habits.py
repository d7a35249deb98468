"""What those who join find: the README's commands, the same checks before a commit and in CI, and templates."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
LINES = re.findall(r"^make .+", README, re.MULTILINE)
PRINTED = ("Hello, Bobby Tables", r"\d+ passed")
"""What the commands of the README print, in their order."""
POSTGRESQL = re.compile(r"pg_|postgres|psql|initdb")


def targets(name: str) -> list[str]:
    """Return the commands of a target of the Makefile, as a shell of this checkout would run them."""
    rules = (ROOT / "Makefile").read_text("utf-8").replace("$(PYTHON_IN_VENV)", "$(VENV)/bin/python")
    found = re.search(rf"^{name}:.*\n((?:\t.*\n)+)", rules, re.MULTILINE)
    assert found, f"the Makefile has no target {name}"
    return [line.strip().removeprefix("@").replace("$(VENV)", ".venv") for line in found[1].splitlines()]


def test_a_commit_is_checked_as_make_check_does() -> None:
    hooks = re.findall(r"entry: (.+)", (ROOT / ".pre-commit-config.yaml").read_text("utf-8"))

    assert hooks == targets("check")


def test_the_build_server_runs_the_script_of_developers() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yaml").read_text("utf-8")

    assert re.findall(r"- run: (.+)", workflow) == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize("template", ["ISSUE_TEMPLATE/defect.md", "ISSUE_TEMPLATE/request.md"])
def test_a_template_for_reports_has_a_name(template: str) -> None:
    assert re.match(r"---\nname: .+\nabout: .+\n---\n", (ROOT / ".github" / template).read_text("utf-8"))


def test_the_readme_begins_with_the_two_commands_of_a_fresh_machine() -> None:
    before, _, after = README.partition("## Quick start")

    assert re.findall(r"^make (\w+)", before, re.MULTILINE) == ["demo", "test"]
    assert before.count("![") == 1
    assert after
    assert len(README.splitlines()) <= 120


def clean_copy(folder: Path) -> dict[str, str]:
    """Copy this checkout into `folder/copy`; return the environment of a fresh machine without PostgreSQL."""
    git = ["git", "-c", f"safe.directory={ROOT}", "checkout-index", "-a", f"--prefix={folder}/copy/"]
    subprocess.run(git, cwd=ROOT, check=True)
    programs = folder / "programs"
    programs.mkdir()
    for each in (path for place in ("/bin", "/usr/bin", "/usr/local/bin") for path in Path(place).glob("*")):
        if not POSTGRESQL.match(each.name) and not (programs / each.name).exists():
            (programs / each.name).symlink_to(each)
    return {"PATH": str(programs), "HOME": str(folder)}


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_readme_is_known_in_a_clean_copy(line: str, tmp_path: Path) -> None:
    env = clean_copy(tmp_path) | {"MAKEFLAGS": "n"}

    done = subprocess.run(["sh", "-c", line], cwd=tmp_path / "copy", env=env, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert ".ci/venv" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("line", "printed"), list(zip(LINES, PRINTED, strict=True)))
def test_a_command_of_the_readme_works_in_a_clean_copy(line: str, printed: str, tmp_path: Path) -> None:
    """Word for word as written: `.ci/run` runs this test, which makes each environment from the locks."""
    env = clean_copy(tmp_path) | {"PYTEST_ARGS": "-n 2 tests/core/test_client.py tests/selection"}

    done = subprocess.run(["sh", "-c", line], cwd=tmp_path / "copy", env=env, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(printed, done.stdout + done.stderr), done.stdout
