-- Renew the locks of jobs that still run, and of their queues; answers the ids that are still ours.
-- Every pool of the ancestor's frees locks older than four hours by `locked_at` alone, so a long job needs this.
with renewed as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set locked_at = now()
   where jobs.id = any(%(ids)s::bigint[])
     and jobs.locked_by = %(pool)s
  returning jobs.id
),
queues as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = now()
   where queues.id = any(%(queue_ids)s::int[])
     and queues.locked_by = %(pool)s
     and (select count(*) from renewed) >= 0
)
select id from renewed
