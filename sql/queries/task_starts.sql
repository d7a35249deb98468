-- Since when the oldest attempt of each task runs whose lock was renewed.
select jobs.task_id, date_part('epoch', min(renewed.started_at))
  from :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks as renewed
  join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
    on jobs.id = renewed.job_id
   and jobs.locked_by = renewed.worker_id
   and jobs.locked_at = renewed.locked_at
 group by jobs.task_id
