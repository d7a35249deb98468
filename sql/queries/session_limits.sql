-- Limit this transaction to short, read-only statements.
-- The planner is restricted to indexes, whatever the statistics say. JIT would take longer than execution, and parallel
-- processes would take CPU time from workers. The caller chooses between generic and custom plans. Rows that row
-- security hides are reported, because a full table would look empty.
select
  current_user::text,
  array(
    select used.use
      \ir parts/hidden_rows.sql
  ) as hidden,
  set_config('statement_timeout', %(statement_timeout)s::text, true),
  set_config('lock_timeout', %(lock_timeout)s::text, true),
  set_config('transaction_read_only', 'on', true),
  set_config('search_path', 'pg_catalog, pg_temp', true),
  set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('max_parallel_workers_per_gather', '0', true),
  set_config('jit', 'off', true),
  set_config('plan_cache_mode', %(plans)s::text, true),
  set_config('datestyle', 'ISO', true)
