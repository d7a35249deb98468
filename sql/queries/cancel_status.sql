-- The jobs to be cancelled: which worker locks each, its last error, and whether the request still waits.
-- A job that is gone has no row.
select jobs.id,
       jobs.locked_by,
       jobs.last_error,
       exists (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations as requests
          where requests.pool = jobs.locked_by
            and requests.job_id = jobs.id
       )
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.id = any(%(ids)s::bigint[])
