"""What is installed: migrations, partitions and schemas for tests."""
