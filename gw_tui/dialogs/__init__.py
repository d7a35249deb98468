"""Questions the console asks before it acts, and what it says afterwards."""
