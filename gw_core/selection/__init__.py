"""Which jobs: one language for lists, actions and the console, without a database or a clock.

Most programs pass a text to `client.jobs` or use `gw_core.Selection`.
A tool that reads selections from its users also needs these names: it parses, completes, prices and explains them.
"""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.selection.completion import Suggestion as Suggestion, suggest as suggest
    from gw_core.selection.history_terms import HISTORY_TERMS as HISTORY_TERMS
    from gw_core.selection.kinds import Resolved as Resolved
    from gw_core.selection.parser import Which as Which, parse as parse
    from gw_core.selection.selection import (
        EVERYTHING as EVERYTHING,
        Condition as Condition,
        Fragment as Fragment,
        StateName as StateName,
    )
    from gw_core.selection.terms import TERMS as TERMS, Cost as Cost, Term as Term
    from gw_core.selection.values import written as written
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.selection.completion: Suggestion suggest
        gw_core.selection.history_terms: HISTORY_TERMS
        gw_core.selection.kinds: Resolved
        gw_core.selection.parser: Which parse
        gw_core.selection.selection: EVERYTHING Condition Fragment StateName
        gw_core.selection.terms: TERMS Cost Term
        gw_core.selection.values: written
        """,
    )
