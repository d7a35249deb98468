"""What pytest leaves out here."""

# A project of its own: a test runs its checks in a process with its settings.
collect_ignore = ["django_project"]
