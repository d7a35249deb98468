"""The tasks of the chaos suite, and one of which this worker is the only one that has it."""

import sys
from pathlib import Path

from gw_core import task

sys.path.insert(0, str(Path(__file__).parents[1] / "tasks"))

import chaos as of_all  # found here by the worker


@task("chaos")
def chaos(payload, context):
    """Run as its payload asks."""
    of_all.chaos(payload, context)


@task("alone")
def alone(payload, context):
    """Run as its payload asks."""
    of_all.chaos(payload, context)


@task("tick")
def tick(payload, context):
    """Run once for each minute and name."""
    of_all.tick(payload, context)
