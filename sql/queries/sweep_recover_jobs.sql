-- Return the jobs of dead workers, each as decided for it or with its attempt not counted; returns their former rows.
-- Rows that another session locks, for example a worker that settles after all, are left to the next sweep.
with locked as materialized (
  select jobs.id, jobs.locked_by
   \ir parts/from_locked_jobs.sql
),
stale as (
  select *
    from unnest(%(workers)s::text[], %(inactive_seconds)s::double precision[]) as stale (id, seconds)
),
decision as (
  select *
    from unnest(
           %(ids)s::bigint[],
           %(run_ats)s::timestamptz[],
           %(attempts)s::int[],
           %(messages)s::text[],
           %(backoffs)s::boolean[]
         ) as decision (id, run_at, attempts, message, with_backoff)
),
held as (
  select jobs.*
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
    join stale
      on jobs.locked_by = stale.id
     and jobs.locked_at <= now() - make_interval(secs => stale.seconds)
   where jobs.id = any(array(select locked.id from locked where locked.locked_by = any(%(workers)s::text[])))
     and jobs.id <> all(%(skipped)s::bigint[])
   order by jobs.id
     for update of jobs skip locked
),
recovered as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = case
           when
           \set ROW held
           \ir parts/was_retired.sql
           then held.attempts
           when decision.with_backoff then held.attempts
           else coalesce(decision.attempts, greatest(0, held.attempts - 1))
         end,
         run_at = case
           when decision.with_backoff
           then greatest(now(), held.run_at) + make_interval(secs => exp(least(held.attempts, 10)::float8))
           else coalesce(
             decision.run_at,
             greatest(held.run_at, now() + make_interval(secs => %(delay_seconds)s::double precision))
           )
         end,
         last_error = coalesce(decision.message, %(message)s::text),
         locked_at = null,
         locked_by = null
    from held
    left join decision on decision.id = held.id
   where jobs.id = held.id
  returning jobs.id
)
select
  \set JOB held
  \set PAYLOAD 'held.payload::text'
  \ir parts/job_columns.sql
from recovered
join held on held.id = recovered.id
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = held.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = held.job_queue_id
order by held.id
