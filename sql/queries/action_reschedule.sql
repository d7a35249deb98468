-- Change when and how jobs run, with the function that every client uses; null keeps a value.
select job.id
  from :GRAPHILE_WORKER_SCHEMA.reschedule_jobs(
         %(ids)s::bigint[],
         run_at => coalesce(%(run_at)s::timestamptz, now() + make_interval(secs => %(delay_seconds)s::double precision)),
         priority => %(priority)s::int,
         attempts => %(attempts)s::int,
         max_attempts => %(max_attempts)s::int
       ) as job
