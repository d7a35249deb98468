-- Delete the jobs this pool ran to their end, and free the queues it needs no longer; answers the ids that were ours.
-- `locked_by` is the fence: a pool that was presumed dead ends nobody else's run.
with completed as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(%(ids)s::bigint[])
     and jobs.locked_by = %(pool)s
  returning jobs.id
),
\set SETTLED completed
\ir parts/freed_queues.sql
select id from completed
