"""What those who join find: the README's commands, the same checks before a commit and in CI, and templates."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


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


@pytest.mark.parametrize("command", re.findall(r"^make \w+", README, re.MULTILINE))
def test_a_command_of_the_readme_is_known_in_a_clean_copy(command: str, tmp_path: Path) -> None:
    git = ["git", "-c", f"safe.directory={ROOT}", "checkout-index", "-a", f"--prefix={tmp_path}/"]
    subprocess.run(git, cwd=ROOT, check=True)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    done = subprocess.run([*command.split(), "-n"], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert ".ci/venv" in done.stdout or "venv" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_runs_in_a_clean_copy_without_postgresql(tmp_path: Path) -> None:
    git = ["git", "-c", f"safe.directory={ROOT}", "checkout-index", "-a", f"--prefix={tmp_path}/"]
    subprocess.run(git, cwd=ROOT, check=True)
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in map(Path, ("/bin", "/usr/bin", "/usr/local/bin")):
        for each in folder.iterdir() if folder.is_dir() else ():
            if not re.match(r"pg_|postgres|psql|initdb", each.name) and not (programs / each.name).exists():
                (programs / each.name).symlink_to(each)
    env = {"PATH": str(programs), "HOME": str(tmp_path)}

    done = subprocess.run(["make", "demo"], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Bobby Tables" in done.stdout + done.stderr
