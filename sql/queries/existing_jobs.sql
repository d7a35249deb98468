-- Which of these jobs still have a row.
select jobs.id
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.id = any(%(ids)s::bigint[])
