-- Delete queues that were found unused, unless a job came since: one with a later id, or one replaced through its key.
delete from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
 where queues.id = any(%(ids)s::int[])
   and queues.locked_at is null
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.job_queue_id = queues.id
            and jobs.id > %(highest_id)s::bigint
       )
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.job_queue_id = queues.id
            and jobs.key is not null
            and jobs.updated_at >= %(since)s::timestamptz
       )
returning queues.id
