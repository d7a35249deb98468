-- Whether the locked job `:ROW` was removed or superseded while it ran, so that it must not become available again.
-- It has lost its key and its attempts, and was updated after it was added; `locked_at` does not help, because a long
-- transaction may remove with an older `now()` and long locks are renewed. The last attempt of a manually rescheduled
-- job looks the same and counts as used.
:ROW.key is null and :ROW.attempts >= :ROW.max_attempts and :ROW.updated_at <> :ROW.created_at
