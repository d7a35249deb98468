-- Delete the rows of `:TABLE` that cleanup_find.sql found, unless a job or a worker uses them since then.
-- A new job has a higher id than the high-water mark; a job replaced by its key was updated after it.
\set TABLE _private_tasks
\set REFERENCE task_id
\set UNUSED 'unused.identifier <> all(%(keep)s::text[])'
delete from :GRAPHILE_WORKER_SCHEMA.:TABLE as unused
 where unused.id = any(%(ids)s::int[])
   and :UNUSED
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.:REFERENCE = unused.id
            and jobs.id > %(highest_id)s::bigint
       )
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.:REFERENCE = unused.id
            and jobs.key is not null
            and jobs.updated_at >= %(since)s::timestamptz
       )
returning unused.id
