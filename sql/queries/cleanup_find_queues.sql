-- The queues that no job is in and no worker holds.
-- `without_failed_jobs` ignores the jobs that a cleanup of failed jobs would delete first.
select queues.id
  from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
 where queues.locked_at is null
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.job_queue_id = queues.id
            and not (
              %(without_failed_jobs)s::boolean
              and jobs.locked_at is null
              and jobs.attempts >= jobs.max_attempts
            )
       )
 order by queues.id
