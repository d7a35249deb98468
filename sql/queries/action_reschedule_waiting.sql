-- Change when and how jobs run that wait for others, and go on waiting: the time counts from when those have ended.
-- A job that waits for nothing, because SQL gave it the time `infinity`, gets the time itself.
with waiting as (
  update :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
     set run_at = coalesce(
           %(run_at)s::timestamptz, case when %(delay_seconds)s::double precision is null then waiting.run_at end
         ),
         delay_seconds = case
           when %(run_at)s::timestamptz is null then coalesce(%(delay_seconds)s::double precision, waiting.delay_seconds)
         end
   where waiting.job_id = any(%(ids)s::bigint[])
     and waiting.released_at is null
  returning waiting.job_id
)
select job.id
  from (
         select pg_catalog.array_agg(ids.id) filter (where waiting.job_id is null) as free,
                pg_catalog.array_agg(ids.id) filter (where waiting.job_id is not null) as held
           from pg_catalog.unnest(%(ids)s::bigint[]) as ids (id)
           left join waiting on waiting.job_id = ids.id
       ) as parts
 cross join lateral (
         select *
           from :GRAPHILE_WORKER_SCHEMA.reschedule_jobs(
                  parts.free,
                  run_at => coalesce(
                    %(run_at)s::timestamptz, now() + make_interval(secs => %(delay_seconds)s::double precision)
                  ),
                  priority => %(priority)s::int,
                  attempts => %(attempts)s::int,
                  max_attempts => %(max_attempts)s::int
                )
         union all
         select *
           from :GRAPHILE_WORKER_SCHEMA.reschedule_jobs(
                  parts.held,
                  priority => %(priority)s::int,
                  attempts => %(attempts)s::int,
                  max_attempts => %(max_attempts)s::int
                )
       ) as job
