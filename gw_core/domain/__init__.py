"""What is true of jobs, keys, schedules and outcomes, decided from arguments alone."""
