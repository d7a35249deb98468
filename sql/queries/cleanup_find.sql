-- The rows of `:TABLE` (tasks or queues) that no job refers to by `:REFERENCE`.
-- `without_failed_jobs` ignores the jobs that a cleanup of failed jobs would delete first.
\set TABLE _private_tasks
\set REFERENCE task_id
\set UNUSED 'unused.identifier <> all(%(keep)s::text[])'
select unused.id
  from :GRAPHILE_WORKER_SCHEMA.:TABLE as unused
 where :UNUSED
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.:REFERENCE = unused.id
            and not (
              %(without_failed_jobs)s::boolean
              and jobs.locked_at is null
              and jobs.attempts >= jobs.max_attempts
            )
       )
 order by unused.id
