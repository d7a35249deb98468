-- Whether a named queue is locked, other than by a pause; only then a sweep checks for queues without a locked job.
-- An idle worker thus sends one statement for each sweep, which also shows that the server answers.
select exists (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
          where queues.locked_at is not null
            and starts_with(queues.locked_by, 'gw-pause:') is not true
       )
