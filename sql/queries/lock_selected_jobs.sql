-- Lock the next jobs of a selection until the transaction ends, and return which workers run them.
-- Rows are locked in order of their ids, as the settling statements do, to avoid deadlocks. Conditions are checked
-- again after a wait: a job that no longer matches is not locked.
select jobs.id,
       tasks.identifier,
       jobs.locked_by,
       jobs.locked_at >= now() - interval '4 hours',
       jobs.attempts >= jobs.max_attempts,
       jobs.last_error is not null
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
  join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
  left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
 cross join lateral (
         select
           \ir parts/state_of_job.sql
       ) as state (name)
 where jobs.id > %(after)s::bigint
   and jobs.id <= %(through)s::bigint
   and (%(ids)s::bigint[] is null or jobs.id = any(%(ids)s::bigint[]))
   \ir parts/is_selected.sql
 order by jobs.id
 limit %(limit)s
   for update of jobs
