"""Every value of a statement has its type beside it, whatever type a driver gives it."""

from __future__ import annotations

import re
from pathlib import Path

from support.every_statement import EVERY_HISTORY_TERM, EVERY_TERM
from support.project_files import project_files

from gw_core.postgres.connection.statements import sql_folder

BARE_VALUE = re.compile(r"%\(\w+\)[sb](?!::\w)")


def test_every_value_is_cast_where_it_stands() -> None:
    """A driver may send a number as `numeric`, and functions are chosen by the types of their arguments."""
    files = project_files(Path(str(sql_folder()), "queries"), "*.sql")
    texts = {path.name: path.read_text("utf-8") for path in files}
    texts |= {"conditions of jobs": EVERY_TERM.text, "conditions of history": EVERY_HISTORY_TERM.text}

    assert {name: found for name, text in texts.items() if (found := BARE_VALUE.findall(text))} == {}
