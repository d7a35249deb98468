-- The queues whose last jobs this statement settles, if `:RELEASES`. They are released after the jobs: all statements
-- lock a job before its queue.
\if :RELEASES
,
released as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = null,
         locked_by = null
   where queues.id = any(%(queue_ids)s::int[])
     \set ROW queues
     \ir is_of_claim.sql
     and (select count(*) from :SETTLED) >= 0
  returning queues.id
)
\endif
