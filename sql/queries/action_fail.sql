-- Fail jobs whose rows we hold for good, by the function every client shares.
select job.id from :GRAPHILE_WORKER_SCHEMA.permanently_fail_jobs(%(ids)s::bigint[], %(reason)s::text) as job
