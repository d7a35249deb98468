-- The queues that no job is in and no worker holds.
select queues.id
  from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
 where queues.locked_at is null
   and not exists (
         select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.job_queue_id = queues.id
       )
 order by queues.id
