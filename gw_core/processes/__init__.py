"""Worker processes beside each other: a supervisor, its processes, and the line between them."""
