-- Since when the named queues are locked whose lock was renewed: the start of the oldest attempt that still holds them.
select queues.queue_name, date_part('epoch', min(renewed.started_at))
  from :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks as renewed
  join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
    on jobs.id = renewed.job_id
   and jobs.locked_by = renewed.worker_id
   and jobs.locked_at = renewed.locked_at
  join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
    on queues.id = jobs.job_queue_id
   and queues.locked_by = renewed.worker_id
 group by queues.queue_name
