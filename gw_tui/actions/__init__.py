"""What an operator can have done from the console, as values."""
