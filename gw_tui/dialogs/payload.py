"""Payloads as an operator writes them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path


def check_payload(text: str) -> str:
    """Return a payload that is JSON; an empty one is `{}`. Raises `ValueError` that says where it is not."""
    trimmed = text.strip()
    if not trimmed:
        return "{}"
    try:
        json.loads(trimmed)
    except json.JSONDecodeError as error:
        raise ValueError(f"The payload is not JSON: {error.msg}, line {error.lineno} column {error.colno}.") from None
    except RecursionError:
        raise ValueError("The payload is nested too deeply.") from None
    return trimmed


def edited(text: str) -> str:
    """Return the text as the operator's own editor left it. Raises `OSError` when there is none."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        path = Path(folder, "payload.json")
        path.write_text(text, encoding="utf-8")
        subprocess.run([*command, str(path)], check=False)  # noqa: S603 - the operator's own choice
        return path.read_text(encoding="utf-8").rstrip("\n")
