"""Real workers on real servers under injected failures, and the promises they keep, checked from outside.

`python -m tests.chaos --help` explains how to run it; `docs/chaos.md` explains what it shows.
"""

import sys
from pathlib import Path

# The modules of tests/support are found without pytest too.
sys.path[:0] = [] if (TESTS := str(Path(__file__).resolve().parents[1])) in sys.path else [TESTS]
