"""`gw init`: make what a first run needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from gw_cli import output, stderr
from gw_cli.command import Json, command
from gw_cli.sanitize import visible
from gw_cli.settings.documents import commented_file
from gw_cli.settings.kinds import EMBEDDED
from gw_cli.settings.resolve import is_database_named
from gw_core.errors import InvalidInputError
from gw_core.runtime.files import SHARED, write_new

TASK: Final = '''\
"""The task `hello`: what runs the jobs added with `gw add hello`."""


def hello(payload, context):
    """Greet the person; if this raises, the job fails and is retried later."""
    context.logger.info(f"Hello, {payload.get('name', 'you')}")
'''
CRONTAB: Final = """\
# Recurring tasks: minute hour day month weekday task ?options {payload}; all times are UTC.
# This one would greet every morning at eight:
# 0 8 * * * hello ?id=good-morning {name: "early bird"}
"""
FILES: Final = output.Shape(
    (output.Column("path", "PATH", shrinks=True), output.Column("result", "RESULT")), order="result path"
)


@command("init")
def init(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Folder [default: the current folder]", show_default=False)
    ] = ".",
    embedded: Annotated[
        bool | None,
        typer.Option(
            "--embedded/--no-embedded",
            help="Use embedded: as the database [default: if the environment names none]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a task folder, a crontab and a configuration.

    A file that is there already is kept as it is.
    """
    root = Path(folder).expanduser()
    if embedded is None:
        embedded = not is_database_named(os.environ)
    files = {
        "tasks/hello.py": TASK,
        "crontab": CRONTAB,
        "gw.toml": commented_file({"connection": EMBEDDED} if embedded else {}),
        # What `gw dev` makes is nothing to be committed.
        ".gw/.gitignore": "*\n",
    }
    rows = [{"path": str(root / name), "result": _make(root / name, text)} for name, text in files.items()]
    output.records(rows, FILES, as_json=as_json)
    if embedded and {"path": str(root / "gw.toml"), "result": "created"} in rows:
        stderr.note("The database is embedded: — a PostgreSQL that gw runs for you; name another in gw.toml.")
    stderr.note('Next: gw dev, and in another terminal: gw add hello --payload \'{"name": "world"}\'')


def _make(path: Path, text: str) -> str:
    """Write a new file, or keep the existing one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, text, mode=SHARED)
    except FileExistsError:
        if path.parent.is_dir():
            return "kept"
        raise InvalidInputError(f"'{visible(str(path.parent))}' exists and is not a folder; choose another") from None
    except OSError as error:
        raise InvalidInputError(f"'{visible(str(path))}' cannot be made: {error.strerror}") from error
    return "created"
