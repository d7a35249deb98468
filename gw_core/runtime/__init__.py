"""What threads, processes and logs need, whatever they are used for."""
