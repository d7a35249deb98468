"""Keeping the queue healthy: cron, heartbeat, sweep and stale locks."""
