-- Delete locked rows as if their jobs had completed, with the function that every client uses.
select job.id from :GRAPHILE_WORKER_SCHEMA.complete_jobs(%(ids)s::bigint[]) as job
