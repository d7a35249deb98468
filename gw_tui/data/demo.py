"""The recording that `gw tui --demo` plays, so that the console can be tried without a database."""

from pathlib import Path
from typing import Final

RECORDING: Final = Path(__file__).with_name("demo.jsonl.gz")
"""Two minutes of a queue with all that an operator meets; `docs/make_demo.py` makes it."""
