-- Record what a worker ran in the minutes that have ended; returns the server's time.
-- The same row may arrive twice, because the answer to the first statement was lost. A row without a minute is of a worker
-- that stops before it knew the server's time.
-- A few more expired rows than new ones are deleted, so that the table stays as long as the period; the others' are skipped.
with new as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_statistics
  select coalesce(to_timestamp(minute), date_trunc('minute', now())),
         task,
         %(worker_id)s::text,
         completed,
         failed,
         permanently_failed,
         run_seconds,
         durations,
         waited,
         wait_seconds
    from json_to_recordset(%(rows)s::json) as entry(
           minute double precision,
           task text,
           completed integer,
           failed integer,
           permanently_failed integer,
           run_seconds double precision,
           durations integer[],
           waited integer,
           wait_seconds double precision
         )
  on conflict do nothing
), expired as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics
   where ctid = any(array(
           select ctid
             from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics
            where minute < now() - make_interval(secs => %(keep_seconds)s::double precision)
            limit json_array_length(%(rows)s::json) + 100
              for update skip locked
         ))
)
select date_part('epoch', clock_timestamp())
