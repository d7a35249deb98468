"""Running jobs: tasks, their context, the executor, worker threads and the pool."""
