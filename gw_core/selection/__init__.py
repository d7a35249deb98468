"""Which jobs: one language for lists, actions and the console, without a database or a clock.

Most programs pass a text to `client.jobs` or use `gw_core.Selection`.
A tool that reads selections from its users also needs these names: it parses, completes, prices and explains them.
"""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.selection.parser import Which as Which, parse as parse
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.selection.parser: Which parse
        """,
    )
