"""Several worker processes: a supervisor, its processes, and the channel between them."""
