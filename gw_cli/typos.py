"""Warn about a name that the queue does not know, which is probably misspelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gw_core.front_ends import FrontEnd, NameKind

if TYPE_CHECKING:
    from gw_core import Client

_UNKNOWN: Final = {
    NameKind.TASKS: "no worker has registered a task",
    NameKind.QUEUES: "there is no queue",
    NameKind.CRON: "no worker has registered a cron item",
}


def doubt_about(client: Client, kind: NameKind, name: str) -> str:
    """Return a warning about a name of this kind that does not exist, with the most similar one; else an empty text.

    In a queue without any such names nothing is misspelled: jobs may be added before the first worker starts.
    """
    if FrontEnd(client).names(kind, name, limit=1) == [name]:
        return ""
    known = FrontEnd(client).names(kind)
    if not known:
        return ""
    from difflib import get_close_matches  # late: few names are misspelled

    similar = get_close_matches(name, known, n=1)
    return f"{_UNKNOWN[kind]} {name!r}" + (f"; did you mean {similar[0]!r}?" if similar else "")
