-- Delete jobs that these claims ran to their end, and release the queues they were the last of; answers the ids deleted.
-- A job that was taken away, and perhaps claimed again, is left alone.
with completed as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(%(ids)s::bigint[])
     \set ROW jobs
     \set CLAIMS '%(claims)s::bigint[]'
     \ir parts/is_of_claim.sql
  returning jobs.id
),
\set SETTLED completed
\ir parts/released_queues.sql
select id from completed
