"""What the tests beside the Node.js worker share with those of the schema."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "schema"))
