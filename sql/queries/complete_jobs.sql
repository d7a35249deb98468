-- Delete jobs that these claims ran to their end, and release the queues they were the last of.
-- A job whose lock was released, and that was perhaps claimed again, is left alone.
with completed as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(%(ids)s::bigint[])
     \set ROW jobs
     \set CLAIMS '%(claims)s::timestamptz[]'
     \ir parts/is_of_claim.sql
  returning jobs.id
),
\set SETTLED completed
\ir parts/released_queues.sql
\ir parts/settled_ids.sql
