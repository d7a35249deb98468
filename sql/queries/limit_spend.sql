-- Store what is left in the bucket of a task, and since when; the transaction has the lock of its limit.
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_buckets (task, tokens, filled_at)
values (%(task)s, %(tokens)s, %(filled_at)s)
on conflict (task, value) do update
  set tokens = excluded.tokens,
      filled_at = excluded.filled_at
returning task
