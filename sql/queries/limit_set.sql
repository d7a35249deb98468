-- Set the limit of a task; one that it has already is replaced, and its bucket is full again.
with emptied as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_buckets where task = %(task)s
)
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
  (task, most_running, per_period, period_seconds, burst, set_by)
values (%(task)s, %(most_running)s, %(per_period)s, %(period_seconds)s, %(burst)s, %(by)s)
on conflict (task) do update
  set most_running = excluded.most_running,
      per_period = excluded.per_period,
      period_seconds = excluded.period_seconds,
      burst = excluded.burst,
      set_by = excluded.set_by,
      set_at = excluded.set_at
returning limits.task
