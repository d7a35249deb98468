-- The next queue with waiting jobs, from `:FROM` on.
select jobs.job_queue_id
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.is_available = true
   and jobs.job_queue_id is not null
   :FROM
 order by jobs.job_queue_id
 limit 1
