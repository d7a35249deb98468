-- The highest job id and the time, to recognize jobs that were added or replaced later.
select coalesce(max(jobs.id), 0), now() from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
