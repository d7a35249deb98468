"""Recurring tasks: schedules, crontabs and time zones."""
