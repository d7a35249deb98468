-- The task identifiers that no job has and nobody wants kept.
-- `without_failed_jobs` ignores the jobs that a cleanup of failed jobs would delete first.
select tasks.id
  from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
 where tasks.identifier <> all(%(keep)s::text[])
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.task_id = tasks.id
            and not (
              %(without_failed_jobs)s::boolean
              and jobs.locked_at is null
              and jobs.attempts >= jobs.max_attempts
            )
       )
 order by tasks.id
