"""What the console decides without a database, a clock or a screen."""
