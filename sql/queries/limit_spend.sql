-- Store what is left in the bucket of a task, and since when; the transaction has the lock of its limit.
-- The claim waits for the disk: one that a crash forgets would let others start beside its jobs, which still run.
with spent as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_buckets (task, tokens, filled_at)
  select %(task)s::text, %(tokens)s::double precision, %(filled_at)s::timestamptz
   where %(tokens)s::double precision is not null
  on conflict (task, value) do update
    set tokens = excluded.tokens,
        filled_at = excluded.filled_at
)
select set_config('synchronous_commit', 'on', true)
