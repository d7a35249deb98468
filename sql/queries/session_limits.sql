-- Bound what follows in this transaction: a reader must never hold anybody up.
-- The planner is kept to walking an index in its order, whatever the statistics say; compiling would take longer than
-- running, and other processes would take time from the workers.
-- Whether the values make a plan worth making anew for them each time is for the asker to say.
-- The tables have row level security without policies, and an empty answer looks like an empty queue: so this answers
-- the name of a role that sees no job, else null.
select
  \set COMMAND r
  \ir parts/role_without_rows.sql
  as role_without_rows,
  set_config('statement_timeout', %(statement_timeout)s, true),
  set_config('lock_timeout', %(lock_timeout)s, true),
  set_config('transaction_read_only', 'on', true),
  set_config('search_path', 'pg_catalog, pg_temp', true),
  set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('max_parallel_workers_per_gather', '0', true),
  set_config('jit', 'off', true),
  set_config('plan_cache_mode', %(plans)s, true),
  set_config('datestyle', 'ISO', true)
