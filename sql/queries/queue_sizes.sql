-- How many jobs wait in each named queue, and how many of them are due: all of them, counted in gw's index of queued jobs.
select queues.queue_name, sizes.unclaimed, sizes.due
  from (
    select jobs.job_queue_id, count(*) as unclaimed, count(*) filter (where jobs.run_at <= now()) as due
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
       and jobs.job_queue_id is not null
     group by jobs.job_queue_id
  ) as sizes
  join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = sizes.job_queue_id
 order by sizes.due desc, sizes.unclaimed desc, queues.queue_name
