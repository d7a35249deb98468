-- Free jobs and queues whose lock is older than four hours; answers how many of each.
-- Paused queues stay locked.
-- The attempt stays counted and the job goes to the end of its priority, as in Graphile Worker.
-- A job that was removed or superseded keeps attempts = max_attempts, so it does not come back to life.
-- Our index of locked jobs is chosen for its order, whatever the statistics say; what is left over is freed next time.
with old as materialized (
  select jobs.id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at < now() - make_interval(secs => %(older_than_seconds)s::double precision)
   order by jobs.locked_at
   limit 10000
),
stale as (
  select jobs.id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(array(select old.id from old))
     and jobs.locked_at < now() - make_interval(secs => %(older_than_seconds)s::double precision)
   order by jobs.id
     for update skip locked
),
jobs as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set locked_at = null,
         locked_by = null,
         run_at = greatest(jobs.run_at, now())
   where jobs.id = any(array(select id from stale))
  returning jobs.id
),
queues as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = null,
         locked_by = null
   where queues.locked_at < now() - make_interval(secs => %(older_than_seconds)s::double precision)
     and starts_with(queues.locked_by, 'gw-pause:') is not true
     and (select count(*) from jobs) >= 0
  returning queues.id
)
select (select count(*) from jobs), (select count(*) from queues)
