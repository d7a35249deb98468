-- The highest id of a job so far and the moment, so that what came later can be told from what was looked at.
select coalesce(max(jobs.id), 0), now() from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
