"""A real PostgreSQL run for you: started on first use, shared by every process, stopped by the last."""

from gw_core.embedded.address import is_embedded
from gw_core.embedded.server import EmbeddedServer, start_or_attach

__all__ = ["EmbeddedServer", "is_embedded", "start_or_attach"]
