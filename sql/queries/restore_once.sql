-- Begin to restore a deleted job; returns the job that was added for it, 0 before one was.
-- The row is locked, so that of two sessions that restore a job at the same time, one waits for the other's transaction.
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_unique as restored (key, job_id, added_at, expires_at)
values (%(once)s::text, 0, now(), now() + interval '90 days')
    on conflict (key) do update set key = excluded.key
returning restored.job_id
