"""The version, in one place: the package metadata, `gw --version` and the heartbeat read it here."""

__version__ = "0.1.0"
"""The version of gw.

Example: docs/api/gw_core.md
"""
