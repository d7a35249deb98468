-- Delete the jobs of these claims and release the queues they were the last of; answers the ids that were deleted.
-- A job that was taken away, and perhaps claimed again, is left alone.
with claims as (
  select * from unnest(%(ids)s::bigint[], %(claims)s::double precision[]) as claims (id, locked_at)
),
completed as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   using claims
   where jobs.id = any(%(ids)s::bigint[])
     and jobs.id = claims.id
     \set ROW jobs
     \set CLAIM claims
     \ir parts/is_of_claim.sql
  returning jobs.id
),
\set SETTLED completed
\ir parts/released_queues.sql
select id from completed
