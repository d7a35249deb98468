"""A real PostgreSQL run for you: started on first use, shared by every process, stopped by the last.

A connection string `embedded:` starts it without this module. A program that needs the server for other clients, or
longer than its own client, keeps it running with `start_or_attach`.
"""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.embedded.server import EmbeddedServer as EmbeddedServer, start_or_attach as start_or_attach
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.embedded.server: EmbeddedServer start_or_attach
        """,
    )
