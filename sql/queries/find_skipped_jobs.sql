-- Of the jobs whose rows could not be locked: those that exist, with the worker that runs each.
select jobs.id, tasks.identifier, jobs.locked_by
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
  join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
 where jobs.id = any(%(ids)s::bigint[])
