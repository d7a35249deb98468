"""Migrations of the app: they install the schema of the queue."""
