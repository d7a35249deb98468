"""The door for workers: `Runner`, what it runs, and the road on one thread for tests."""
