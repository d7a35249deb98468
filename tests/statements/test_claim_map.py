"""The map at the head of claim_jobs.sql has every part of the statement, in its order."""

from __future__ import annotations

import re

from gw_core.postgres.connection.statements import expanded_statement


def test_the_map_of_a_claim_lists_its_parts() -> None:
    text, _ = expanded_statement("claim_jobs", "graphile_worker", {})
    head = text.partition("with recursive\n")[0]

    mapped = re.findall(r"^--   (\w+)  ", head, re.MULTILINE)
    parts = re.findall(r"^(\w+) (?:\([\w, ]+\) )?as (?:materialized )?\($", text, re.MULTILINE)

    assert parts == mapped
    assert len(parts) > 10
