"""Find the files under sql/ and make them ready to run in a schema of any name."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, LiteralString

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.safe_text import check_schema_name, sql_identifier

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

MARKER: Final = ":GRAPHILE_WORKER_SCHEMA"
_LITERAL: Final = ":'GRAPHILE_WORKER_SCHEMA'"
_BODY: Final = "$gw$"
"""What the bodies of functions stand between."""
_VALUE: Final = re.compile(r"%\((\w+)\)s")

# Words of psql: include a file that lies beside, say what `:NAME` stands for from here on, and leave out lines.
_INCLUDE: Final = re.compile(r"( *)\\ir (?:(?:\.\./)+(\w+)/)?(?:parts/)?(\w+)\.sql")
_SET: Final = re.compile(r" *\\set (\w+) '?(.*?)'?")
_IF: Final = re.compile(r"\\if :([A-Z]+)")
_END_IF: Final = "\\endif"
_NAME: Final = re.compile(r"(?<!:):([A-Z]+)\b")


@lru_cache(maxsize=1)
def sql_folder() -> Traversable:
    """Return the folder with the SQL files, also in a zip: inside the package in a wheel, beside it in a checkout."""
    package: Any = Path(__file__).parents[2]
    if not package.is_dir():
        from importlib.resources import files  # takes 2 ms of each start, and only a zip needs it

        package = files("gw_core")
    for folder in (package / "sql", package.parent / "sql"):
        if (folder / "queries").is_dir():
            found: Traversable = folder
            return found
    raise GraphileWorkerError(f"the SQL files are missing beside {package}; install graphile-worker again")


def quoted(identifier: str) -> str:
    """Return a schema or object name as PostgreSQL wants it in a statement, whatever it contains."""
    check_schema_name(identifier)
    return sql_identifier(identifier)


def sql_text(path: str, names: Mapping[str, str] | None = None) -> str:
    """Return sql/PATH.sql with the parts it includes, from the folder `parts` beside it, in their places.

    A file may have variables, written `:NAME`. `\\set` gives them values from there on; `names` take precedence.
    Lines between `\\if :NAME` and `\\endif` are left out unless the value is `true`.
    """
    kind = path.partition("/")[0]
    return "".join(f"{line}\n" for line in _expanded(kind, path, ChainMap(dict(names or {}), {})))


def _expanded(kind: str, path: str, names: ChainMap[str, str]) -> Iterator[str]:
    is_left_out = False
    for line in _read(path).splitlines():
        if condition := _IF.fullmatch(line):
            is_left_out = names[condition[1]] != "true"
        elif is_left_out or line == _END_IF:
            is_left_out = is_left_out and line != _END_IF
        elif part := _INCLUDE.fullmatch(line):
            path = f"{part[2] or kind}/parts/{part[3]}"
            yield from (part[1] + inner for inner in _expanded(kind, path, names))
        elif setting := _SET.fullmatch(line):
            names.maps[1][setting[1]] = setting[2]
        elif line.lstrip().startswith("--"):
            yield line
        else:
            yield _NAME.sub(lambda match: names.get(match[1], match[0]), line)


@lru_cache(maxsize=512)
def _read(path: str) -> str:
    return sql_folder().joinpath(f"{path}.sql").read_text("utf-8")


def read_statements() -> None:
    """Read all statements and their parts: an upgrade can replace or delete the files while this process runs."""
    for folder in ("queries", "queries/parts"):
        for name in _names_in(folder):
            _read(f"{folder}/{name}")


def query_names() -> list[str]:
    """Return the names of all statements."""
    return _names_in("queries")


def _names_in(folder: str) -> list[str]:
    files = [each.name for each in sql_folder().joinpath(folder).iterdir()]
    return sorted(name.removesuffix(".sql") for name in files if name.endswith(".sql"))


def conditions_of(name: str) -> dict[str, str]:
    """Return the variables on which lines of a statement depend, each with the value that leaves them out."""
    lines = _read(f"queries/{name}").splitlines()
    return {found[1]: "false" for line in lines if (found := _IF.fullmatch(line))}


def expanded_statement(name: str, schema: str, variables: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return a statement for people, with its comments and `$1`, `$2`, … for its values, and their names in order."""
    lines = sql_text(f"queries/{name}", variables).splitlines()
    text, names = _numbered("".join(f"{line.rstrip()}\n" for line in lines if line.strip()))
    return text.replace(MARKER, quoted(schema)), names


@lru_cache(maxsize=512)
def query(name: str, schema: str, **names: str) -> LiteralString:
    """Return statement `sql/queries/NAME.sql` for `schema`, to be executed with a mapping of values (`{}` for none).

    `names` replace the values that the file gives its variables, and `SELECTION` has the text of a `Fragment`.
    Comments are removed: a `%` in one would be taken for a placeholder.
    """
    # The driver reads `%` as the start of a placeholder, so one in the schema's name is doubled.
    return _trusted(_query_text(name, names).replace(MARKER, quoted(schema).replace("%", "%%")))


def marked_query(name: str, **names: str) -> str:
    """Return a statement in which the marker still stands for the schema."""
    return _query_text(name, names)


def _query_text(name: str, names: Mapping[str, str] | None = None) -> str:
    """Return a statement without its comments and blank lines; the marker still stands for the schema."""
    lines = sql_text(f"queries/{name}", names).splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("--"))


@lru_cache(maxsize=64)
def numbered_query(name: str, schema: str, **names: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the statement with `$1`, `$2`, … for its values, and their names in that order.

    `names` replace the values that the file gives its variables.
    The driver parses a text of more than 4 KiB at every use, which costs more than running a short claim.
    """
    text, values = _numbered(_query_text(name, names))
    return text.replace(MARKER, quoted(schema)).encode(), values


def _numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text with `$1`, `$2`, … for its values, and their names in that order."""
    values: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in values:
            values.append(match[1])
        return f"${values.index(match[1]) + 1}"

    return _VALUE.sub(number, text).replace("%%", "%"), tuple(values)


@lru_cache(maxsize=64)
def numbered_text(
    name: str, schema: str, **variables: str
) -> tuple[str, Callable[[Mapping[str, Any]], tuple[Any, ...]]]:
    """Return what `numbered_query` returns, as text, with what puts a mapping of values in the order of the names."""
    text, names = numbered_query(name, schema, **variables)
    if len(names) > 1:
        return text.decode(), itemgetter(*names)
    return text.decode(), lambda values: tuple(values[each] for each in names)


def in_schema(text: str, schema: str) -> LiteralString:
    """Return `text` with the markers replaced by the schema's name, to be executed without values (migrations).

    `:GRAPHILE_WORKER_SCHEMA` becomes an identifier, `:'GRAPHILE_WORKER_SCHEMA'` a string, as psql writes its variables.
    """
    # A name that contains the delimiter of function bodies would end them.
    delimiter = next(each for each in (f"$gw{n or ''}$" for n in count()) if each not in schema)
    return _trusted(text.replace(_BODY, delimiter).replace(_LITERAL, _string(schema)).replace(MARKER, quoted(schema)))


def _string(text: str) -> str:
    return " E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _trusted(text: Any) -> LiteralString:
    """Vouch to the type checker for text from our files and tables; the only variable part is a quoted name."""
    trusted: LiteralString = text
    return trusted
