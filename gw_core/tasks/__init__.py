"""Find tasks, register them, and load them again when their files change."""
