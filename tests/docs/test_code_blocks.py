"""Every code block of the manual works, is output, or is marked as a fragment with the reason.

A page's Python blocks run one after the other in one program, so a block can use names of the blocks above it. A block
with output below it runs on its own. `<!-- fragment: why -->` above a block leaves it out; it must compile.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import json5
import psycopg
import pytest
from pages import FENCE, ROOT, Block, blocks, pages
from support.cli_program import every_command
from support.warm_program import run_code
from typer._click.exceptions import UsageError

LANGUAGES = {"python", "sh", "console", "sql", "toml", "json", "json5", "crontab", "yaml", "ini", "text", "javascript"}
DIRECTIVES = ("{toctree}", "{eval-rst}", "{public-names}", "{include}")
STORIES = ("docs/start/tutorial.md", "docs/guide/writing-tasks.md", "docs/reference/schema.md")
"""Pages that a test of their own follows."""
PARTS = {
    "docs/guide/django.md": "examples/django_project",
    "docs/guide/fastapi.md": "examples/fastapi_app",
    "docs/guide/flask.md": "examples/flask_app",
    "docs/guide/testing.md": "examples/testing",
}
"""Pages whose programs are parts of a project, and the project, which other tests run."""
ADDRESS = re.compile(r"postgres(?:ql)?:///my_db")
RESULT_TIMEOUT = re.compile(r"(?<=\.result\(job\.id, )timeout=30\b")
"""Shortened for the test: no worker runs beside the program, so it waits that long."""
COMMANDS = {tuple(name.split()): command for name, command in every_command().items()}

INCOMPLETE = re.compile(r"^gw (cron|groups|help.*)$|[|>…]|COMMAND")

BLOCKS = [block for page in pages() for block in blocks(page) if not block.language.startswith(DIRECTIVES)]


def of(*languages: str) -> list[Block]:
    """Return the blocks in one of these languages that no other test runs."""
    return [each for each in BLOCKS if each.language in languages and each.page not in STORIES]


def programs() -> Iterator[tuple[str, str, str | None]]:
    """Yield a name, a program and its output, if the page shows it: one for each page, and those with output."""
    following = dict(pairwise(BLOCKS))
    together: dict[str, list[str]] = {}
    for block in (each for each in of("python") if each.page not in PARTS):
        after = following.get(block)
        if not block.fragment and after is not None and block.has_output(after):
            yield str(block), block.code, after.code
        elif not block.fragment:
            together.setdefault(block.page, []).append(block.code)
    yield from ((page, "\n\n".join(codes), None) for page, codes in together.items())


PROGRAMS = list(programs())


def test_each_block_names_its_language() -> None:
    assert [str(each) for each in BLOCKS if each.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", PARTS)
def test_a_page_names_the_project_of_its_programs(page: str) -> None:
    assert PARTS[page] in (ROOT / page).read_text("utf-8")
    assert (ROOT / PARTS[page]).is_dir()


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.code, str(block), "exec")


@pytest.mark.parametrize(("code", "output"), [pytest.param(*each[1:], id=each[0]) for each in PROGRAMS])
def test_a_program_runs(code: str, output: str | None, database_url: str, tmp_path: Path) -> None:
    program = RESULT_TIMEOUT.sub("timeout=1", ADDRESS.sub(database_url, code))
    done = run_code(program, folder=tmp_path, environment={**os.environ, "DATABASE_URL": database_url})

    assert done.code == 0, done.err
    assert output in (None, done.out), done.err


def commands(block: Block) -> Iterator[str]:
    """Yield the commands of a block that call gw, without what a shell adds to them."""
    text = re.sub(r"\\\n", " ", block.code)
    lines = text.splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    for line in lines:
        for part in re.split(r" && | \|\| |; | \| ", re.sub(r"\s+#.*", "", line)):
            if part.startswith("gw "):
                yield re.sub(r" (?:2?>>?|<) ?\S+.*| &$", "", part)


def error_of(line: str) -> str:
    """Return what gw does not understand in a command; "": nothing."""
    words = shlex.split(line)[1:]
    name = max((each for each in COMMANDS if tuple(words[: len(each) - 1]) == each[1:]), key=len, default=())
    if not name:
        return f"no such command: {line}"
    try:
        COMMANDS[name].make_context("gw", words[len(name) - 1 :])
    except UsageError as error:
        return f"{line}: {error.format_message()}"
    return ""


@pytest.mark.parametrize("block", of("sh", "console"), ids=str)
def test_gw_understands_its_commands(block: Block) -> None:
    assert [error for line in commands(block) if (error := error_of(line))] == []


@pytest.mark.parametrize("page", [each for each in pages() if "adr" not in each.parts], ids=lambda page: page.stem)
def test_gw_understands_the_commands_in_sentences(page: Path) -> None:
    """In prose, a command or an option may lack its value."""
    text = FENCE.sub("", page.read_text("utf-8"))
    named = [line for line in re.findall(r"(?<!`)`(gw [a-z][^`\n]*)`(?!`)", text) if not INCOMPLETE.search(line)]
    errors = [error for line in named if (error := error_of(line))]

    assert [each for each in errors if not re.search("Missing argument|requires an argument", each)] == []


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_toml_is_toml(block: Block) -> None:
    tomllib.loads(block.code)


@pytest.mark.parametrize("block", of("json", "json5"), ids=str)
def test_json_is_json(block: Block) -> None:
    for text in [block.code] if block.fragment else block.code.strip().split("\n\n"):
        json5.loads(text) if block.language == "json5" else json.loads(text)


@pytest.mark.parametrize("block", [each for each in of("sql") if not each.fragment], ids=str)
def test_sql_runs(block: Block, database_url: str) -> None:
    statements = re.sub(r"(?<!:):\w+::", "null::", block.code)  # parameters as in psql
    with psycopg.connect(database_url, autocommit=True) as connection:
        if "concurrently" in statements:
            for statement in statements.split(";\n"):
                connection.execute(statement.encode())
        else:
            with connection.transaction(force_rollback=True):
                connection.execute(statements.encode())
