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
