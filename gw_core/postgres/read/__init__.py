"""Questions about a queue, none of which changes it."""
