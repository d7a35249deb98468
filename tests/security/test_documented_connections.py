"""The connection strings that the guides show work as they stand, also in a folder with a space."""

from __future__ import annotations

import re
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"


def test_the_socket_folder_of_an_embedded_server_may_have_a_space_in_its_name() -> None:
    (shown,) = re.findall(r'psql "(host=[^"]*)"', (GUIDE / "embedded.md").read_text("utf-8"))

    found = conninfo_to_dict(shown.replace("$PWD", "/home/me/my shop"))

    assert str(found["host"]).startswith("/home/me/my shop/")


def test_the_guide_shows_how_to_verify_the_servers_certificate() -> None:
    shown = re.findall(r"postgres(?:ql)?://\S*sslmode=verify-full\S*", (GUIDE / "security.md").read_text("utf-8"))

    assert shown
    for each in shown:
        found = conninfo_to_dict(each.rstrip("`'\")"))
        assert (found["sslmode"], "sslrootcert" in found) == ("verify-full", True)
