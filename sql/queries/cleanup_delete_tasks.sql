-- Delete task identifiers that were found unused, unless a job or a worker came since.
delete from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
 where tasks.id = any(%(ids)s::int[])
   and tasks.identifier <> all(%(keep)s::text[])
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.task_id = tasks.id
            and jobs.id > %(highest_id)s::bigint
       )
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.task_id = tasks.id
            and jobs.key is not null
            and jobs.updated_at >= %(since)s::timestamptz
       )
returning tasks.id
