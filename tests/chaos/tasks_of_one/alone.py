"""The tasks of the chaos suite, and one of which this worker is the only one that has it."""

import sys
from pathlib import Path

from gw_core import task

sys.path.insert(0, str(Path(__file__).parents[1] / "tasks"))

from chaos import chaos, tick  # noqa: F401 - found here by the worker


@task("alone")
def alone(payload, context):
    """Run as the payload says."""
    chaos(payload, context)
