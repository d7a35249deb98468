-- The task identifiers that no job has and nobody wants kept.
select tasks.id
  from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
 where tasks.identifier <> all(%(keep)s::text[])
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.task_id = tasks.id
       )
 order by tasks.id
