"""What the console asks of a queue, and the threads that ask."""
