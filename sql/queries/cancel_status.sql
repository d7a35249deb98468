-- Look what became of jobs that were to be cancelled: who holds each now, what its last error says, who took the wish.
-- A job that is gone has no row.
select jobs.id,
       jobs.locked_by,
       jobs.last_error,
       exists (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations as wishes
          where wishes.pool = jobs.locked_by
            and wishes.job_id = jobs.id
       )
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.id = any(%(ids)s::bigint[])
