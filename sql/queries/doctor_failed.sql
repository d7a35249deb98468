-- The tasks of the permanently failed jobs, the most of them first, among the `most` that failed last.
-- This needs gw's index of failed jobs, so it is not sent without it.
with failed as materialized (
  select jobs.task_id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is null
     and jobs.attempts >= jobs.max_attempts
   order by jobs.run_at desc, jobs.id desc
   limit %(most)s::bigint
)
select tasks.identifier, count(*)
  from failed
  join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = failed.task_id
 group by tasks.identifier
 order by count(*) desc, tasks.identifier
