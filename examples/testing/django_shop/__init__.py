"""A shop on Django whose orders add jobs."""
