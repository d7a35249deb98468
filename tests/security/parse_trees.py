"""Which functions and operators SQL calls by name, read from the parse trees that PostgreSQL prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

TOKEN = re.compile(r'[{}()]|"(?:\\.|[^"\\])*"|(?:\\.|[^\s(){}\\])+')
BOOLEAN = 16
TEXT = 25

TYPE_FIELDS = {
    "VAR": "vartype",
    "CONST": "consttype",
    "PARAM": "paramtype",
    "FUNCEXPR": "funcresulttype",
    "OPEXPR": "opresulttype",
    "DISTINCTEXPR": "opresulttype",
    "NULLIFEXPR": "opresulttype",
    "AGGREF": "aggtype",
    "WINDOWFUNC": "wintype",
    "ARRAYEXPR": "array_typeid",
    "ARRAY": "array_typeid",
    "COALESCE": "coalescetype",
    "COALESCEEXPR": "coalescetype",
    "MINMAX": "minmaxtype",
    "MINMAXEXPR": "minmaxtype",
    "CASE": "casetype",
    "CASEEXPR": "casetype",
    "ROW": "row_typeid",
    "ROWEXPR": "row_typeid",
    "SQLVALUEFUNCTION": "type",
    "CASETESTEXPR": "typeId",
    "SETTODEFAULT": "typeId",
    "SUBSCRIPTINGREF": "refrestype",
}
IMPLICIT_FORMATS = {
    "FUNCEXPR": "funcformat",
    "RELABELTYPE": "relabelformat",
    "COERCEVIAIO": "coerceformat",
    "ARRAYCOERCEEXPR": "coerceformat",
    "CONVERTROWTYPEEXPR": "convertformat",
}
IMPLICIT = "2"
CALLED_BY_NAME = "0"
SCALAR_SUBQUERY = "4"
ARRAY_SUBQUERY = "6"

# Added to the number of a type, they stand for a type that only the catalog knows.
ARRAY_OF = 1 << 40
ELEMENT_OF = 1 << 41


class Node(dict[str, Any]):
    """A node of a parse tree: its fields, and `tag` for what it is."""


@dataclass(frozen=True)
class Call:
    """A function or operator called by name, and the types of its arguments as they were before implicit casts."""

    is_operator: bool
    oid: int
    arguments: tuple[int, ...]
    names: tuple[str, ...] = ()


@contextmanager
def recorded(connection: psycopg.Connection[Any]) -> Iterator[list[Call]]:
    """Collect what is called by everything that is parsed inside the block, functions' bodies included."""
    calls: list[Call] = []

    def collect(notice: psycopg.errors.Diagnostic) -> None:
        if notice.message_primary == "parse tree:":
            calls.extend(_calls_in(_parsed(notice.message_detail or "")))

    connection.execute("select set_config('client_min_messages', 'log', false)")
    connection.execute("select set_config('debug_pretty_print', 'off', false)")
    connection.add_notice_handler(collect)
    connection.execute("set debug_print_parse = on")
    try:
        yield calls
    finally:
        connection.execute("set debug_print_parse = off")
        connection.remove_notice_handler(collect)


def _parsed(text: str) -> Any:
    tokens = iter(TOKEN.findall(text))
    return _value(next(tokens), tokens)


def _value(token: str, tokens: Iterator[str]) -> Any:
    if token == "(":
        return [_value(inner, tokens) for inner in iter(lambda: next(tokens), ")")]
    if token != "{":
        return token
    node, field = Node(tag=next(tokens)), ""
    for inner in iter(lambda: next(tokens), "}"):
        if inner.startswith(":") and len(inner) > 1:
            field = inner[1:]
        elif field not in node:  # what follows a value are the bytes of a constant
            node[field] = _value(inner, tokens)
    return node


def _calls_in(value: Any) -> Iterator[Call]:
    if isinstance(value, list):
        for each in value:
            yield from _calls_in(each)
    if not isinstance(value, Node):
        return
    yield from _calls_of(value)
    for each in value.values():
        yield from _calls_in(each)


def _calls_of(node: Node) -> Iterator[Call]:
    match node["tag"]:
        case "OPEXPR" | "DISTINCTEXPR" | "NULLIFEXPR" | "SCALARARRAYOPEXPR":
            left, *right = [_type(each) for each in node["args"]]
            if node["tag"] == "SCALARARRAYOPEXPR":
                right = [_element(each) for each in right]
            yield from _variants(True, int(node["opno"]), [left, *right], node["args"])
        case "ROWCOMPARE" | "ROWCOMPAREEXPR":
            for operator, one, other in zip(node["opnos"][1:], node["largs"], node["rargs"], strict=True):
                yield Call(True, int(operator), (_type(one), _type(other)))
        case "FUNCEXPR" if node["funcformat"] == CALLED_BY_NAME:
            yield from _function(int(node["funcid"]), node["args"])
        case "AGGREF":
            yield from _function(int(node["aggfnoid"]), [each["expr"] for each in _list(node["args"])])
        case "WINDOWFUNC":
            yield from _function(int(node["winfnoid"]), node["args"])


def _function(oid: int, arguments: Any) -> Iterator[Call]:
    given = _list(arguments)
    names = tuple(each["name"] if each["tag"] == "NAMEDARGEXPR" else "" for each in given)
    bare = [each["arg"] if each["tag"] == "NAMEDARGEXPR" else each for each in given]
    yield from _variants(False, oid, [_type(each) for each in bare], bare, names)


def _variants(
    is_operator: bool, oid: int, types: list[int], arguments: list[Node], names: tuple[str, ...] = ()
) -> Iterator[Call]:
    """A literal may have had no type of its own, and texts are what PostgreSQL takes it for first."""
    as_text = [TEXT if each["tag"] == "CONST" else one for each, one in zip(arguments, types, strict=True)]
    for variant in {tuple(types), tuple(as_text)}:
        yield Call(is_operator, oid, variant, names)


def _list(value: Any) -> list[Node]:
    return value if isinstance(value, list) else []


def _type(node: Node) -> int:
    """Return the type of an expression before it was cast implicitly."""
    tag = node["tag"]
    if node.get(IMPLICIT_FORMATS.get(tag, "")) == IMPLICIT:
        inner = node.get("arg") or node["args"][0]
        return _type(inner)
    if tag in TYPE_FIELDS and TYPE_FIELDS[tag] in node:
        return int(node[TYPE_FIELDS[tag]])
    if "resulttype" in node:
        return int(node["resulttype"])
    if tag == "NAMEDARGEXPR":
        return _type(node["arg"])
    if tag == "SUBLINK" and node["subLinkType"] in (SCALAR_SUBQUERY, ARRAY_SUBQUERY):
        column = _type(node["subselect"]["targetList"][0]["expr"])
        return column + (ARRAY_OF if node["subLinkType"] == ARRAY_SUBQUERY else 0)
    return BOOLEAN


def _element(array: int) -> int:
    return array - ARRAY_OF if array > ARRAY_OF else array + ELEMENT_OF
