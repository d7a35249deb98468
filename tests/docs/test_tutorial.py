"""The tutorial works as written: its files, its commands and their output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pages import DOCS, blocks


def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PG", "GW_", "DATABASE_URL"))
    }
    env = inherited | {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    folder, output = tmp_path, ""

    for block in blocks(DOCS / "start" / "tutorial.md"):
        if block.language == "python":
            name, _, code = block.code.removeprefix("# ").partition("\n")
            (folder / name).write_text(code, "utf-8")
        elif block.language == "sh":
            script = ["bash", "-e", "-c", block.code]
            done = subprocess.run(script, cwd=folder, env=env, text=True, capture_output=True, timeout=120)
            assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
            output, folder = done.stdout + done.stderr, tmp_path / "shop"
        else:
            assert [line for line in block.code.splitlines() if line not in output] == [], f"{block}\n{output}"
