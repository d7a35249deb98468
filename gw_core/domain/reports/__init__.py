"""What is reported about a queue."""
