"""Questions the console asks before it actions, and what it says afterwards."""
