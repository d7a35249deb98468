-- The queues that a pool needs no longer, freed after its jobs are settled: everybody locks a job before its queue.
-- When the jobs were settled in doubt, by a statement whose answer was lost, they are freed only if a job was ours yet.
freed as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = null,
         locked_by = null
   where queues.id = any(%(queue_ids)s::int[])
     and queues.locked_by = %(pool)s
     and (select count(*) from :SETTLED) >= %(least_ours)s
)
