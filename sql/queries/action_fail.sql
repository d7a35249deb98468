-- Fail jobs permanently, with the function that every client uses.
select job.id from :GRAPHILE_WORKER_SCHEMA.permanently_fail_jobs(%(ids)s::bigint[], %(reason)s::text) as job
