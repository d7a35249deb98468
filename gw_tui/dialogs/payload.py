"""Payloads as an operator writes them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path


def check_payload(text: str) -> str:
    """Return a payload that is JSON; an empty one is `{}`. Raises `ValueError` with the position of an error."""
    trimmed = text.strip()
    if not trimmed:
        return "{}"
    try:
        json.loads(trimmed)
    except json.JSONDecodeError as error:
        raise ValueError(f"Payload is not valid JSON: {error.msg}, line {error.lineno} column {error.colno}.") from None
    except RecursionError:
        raise ValueError("Payload is nested too deeply") from None
    return trimmed


def edited(text: str) -> str:
    """Return the text as the operator's own editor left it.

    Raises `OSError` when there is none, and `ValueError` when it exited with an error, as editors do on request, or
    when the file is not text.
    """
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "") or ["vi"]
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        path = Path(folder, "payload.json")
        path.write_text(text, encoding="utf-8")
        code = subprocess.run([*command, str(path)], check=False).returncode  # noqa: S603 - the operator's own choice
        if code:
            raise ValueError(f"{Path(command[0]).name} ended with {code}")
        return path.read_text(encoding="utf-8").rstrip("\n")
