-- How long the statements of this transaction wait for a lock.
select set_config('lock_timeout', %(timeout)s::text, true)
