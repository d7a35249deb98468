-- Whether the queue can be read; the cheapest question that needs its table.
select exists (select from :GRAPHILE_WORKER_SCHEMA._private_jobs)
