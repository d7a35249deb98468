-- Delete the jobs this pool ran to their end, and free the queues it needs no longer; answers the ids that were ours.
-- `locked_by` is the fence: a pool that was presumed dead ends nobody else's run.
-- The queues are freed after the jobs are gone, in the order everybody locks them: job before queue.
with completed as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(%(ids)s::bigint[])
     and jobs.locked_by = %(pool)s
  returning jobs.id
),
freed as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = null,
         locked_by = null
   where queues.id = any(%(queue_ids)s::int[])
     and queues.locked_by = %(pool)s
     and (select count(*) from completed) >= %(least_ours)s
)
select id from completed
