-- Delete jobs whose rows we hold, as if they had been completed, by the function every client shares.
select job.id from :GRAPHILE_WORKER_SCHEMA.complete_jobs(%(ids)s::bigint[]) as job
