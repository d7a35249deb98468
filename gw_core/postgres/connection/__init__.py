"""Connections, and how statements run on them."""
