-- Lock the next jobs of a selection until the transaction ends, and return which workers run them.
-- Rows are locked in order of their ids, as the settling statements do, to avoid deadlocks. Conditions are checked
-- again after a wait: a job that no longer matches is not locked.
select jobs.id,
       tasks.identifier,
       jobs.locked_by,
       jobs.locked_at >= now() - interval '4 hours',
       jobs.attempts >= jobs.max_attempts,
       jobs.last_error is not null,
       coalesce(jobs.flags ? 'gw:group', false)
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
  join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
 where jobs.id > %(after)s::bigint
   and jobs.id <= %(through)s::bigint
   and :SELECTION
 order by jobs.id
 limit %(limit)s
   for update of jobs
