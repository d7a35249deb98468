-- Set the limit of a task; one that it has already is replaced, and its bucket is full again.
with emptied as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_buckets where task = %(task)s::text
)
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
  (task, most_running, per_period, period_seconds, burst, field, set_by)
values (
  %(task)s::text,
  %(most_running)s::integer,
  %(per_period)s::double precision,
  %(period_seconds)s::double precision,
  %(burst)s::double precision,
  %(field)s::text,
  coalesce(%(by)s::text, session_user::text)
)
on conflict (task) do update
  set most_running = excluded.most_running,
      per_period = excluded.per_period,
      period_seconds = excluded.period_seconds,
      burst = excluded.burst,
      field = excluded.field,
      set_by = excluded.set_by,
      set_at = excluded.set_at
returning limits.task
