"""Questions the console asks before an action, and the results it shows afterwards."""
