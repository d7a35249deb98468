-- How long the job that is next in line has been due; read from the head of the index that claims use.
select date_part('epoch', now() - jobs.run_at)
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.is_available = true
   and jobs.run_at <= now()
 order by jobs.priority, jobs.run_at
 limit 1
