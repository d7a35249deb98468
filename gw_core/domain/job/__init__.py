"""A job, its claim, and what became of it."""
