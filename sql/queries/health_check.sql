-- Whether the queue can be read, and whether the server takes no writes, as a standby; the cheapest question that needs its
-- table. It asks for a job that cannot be there: to find just any job it would have to walk past those deleted lately.
select exists (select from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs where jobs.id = 0::bigint),
       pg_is_in_recovery(),
       (select reset_val = 'on'::text from pg_settings where name = 'default_transaction_read_only'::text)
