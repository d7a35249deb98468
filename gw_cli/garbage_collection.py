"""When the process collects garbage: not during its start, and not at its end.

Imports create about 75,000 objects and no garbage.
Collections during the imports and at the end took a quarter of the CPU time of `gw run --once` and `gw list`.
"""

from __future__ import annotations

import gc
from typing import Final

AS_USUAL: Final = gc.get_threshold()
DURING_START: Final = 100_000
"""More objects than a start creates, so that a command that never calls `resume` still collects its garbage."""


def postpone() -> None:
    """Do not collect garbage while the program starts."""
    gc.set_threshold(DURING_START, *AS_USUAL[1:])


def resume() -> None:
    """Collect garbage as usual after `postpone`; objects that exist already are not visited again."""
    if gc.get_threshold() != AS_USUAL:
        gc.freeze()
        gc.set_threshold(*AS_USUAL)


def skip_the_last() -> None:
    """Keep the interpreter from searching all objects for garbage when it ends."""
    gc.freeze()
