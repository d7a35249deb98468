-- Delete the jobs that these claims ran to their end. `:RETURNED` are the columns that the statement needs of them.
completed as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(%(ids)s::bigint[])
     \set ROW jobs
     \set CLAIMS '%(claims)s::timestamptz[]'
     \ir is_of_claim.sql
  returning :RETURNED
)
