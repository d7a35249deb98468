"""Which jobs: one language for lists, actions and the console, without a database or a clock."""

from gw_core.selection.completion import NAMES_OF, Suggestion, suggest
from gw_core.selection.history_terms import HISTORY_TERMS
from gw_core.selection.kinds import Resolved
from gw_core.selection.parser import SelectionError, Which, parse, selection_of, selection_to_change
from gw_core.selection.selection import EVERYTHING, Condition, Fragment, Selection, StateName
from gw_core.selection.terms import TERMS, Cost, Term
from gw_core.selection.values import written

__all__ = [
    "EVERYTHING",
    "HISTORY_TERMS",
    "NAMES_OF",
    "TERMS",
    "Condition",
    "Cost",
    "Fragment",
    "Resolved",
    "Selection",
    "SelectionError",
    "StateName",
    "Suggestion",
    "Term",
    "Which",
    "parse",
    "selection_of",
    "selection_to_change",
    "suggest",
    "written",
]
