-- Request that running jobs be cancelled, and notify their workers; returns each job that exists.
-- A worker that does not listen reads the request with its next heartbeat. Only gw's workers support it; their ids
-- match `cancellable_workers`. Requests older than an hour are deleted: their workers are gone, and job ids are not
-- reused.
with expired as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations
   where asked_at < now() - interval '1 hour'
),
found as materialized (
  select jobs.id, tasks.identifier, jobs.locked_by, jobs.locked_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
    join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
   where jobs.id = any(%(ids)s::bigint[])
),
requested as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations (pool, job_id, message, retry, locked_at)
  select locked_by, id, %(message)s::text, %(retry)s::boolean, locked_at
    from found
   where locked_by ~ %(cancellable_workers)s::text
  on conflict (pool, job_id) do update
    set message = excluded.message,
        retry = excluded.retry,
        asked_at = excluded.asked_at,
        locked_at = excluded.locked_at
  returning pool, job_id
),
notified as (
  select pg_notify('gw:' || md5(pool), 'cancel')
    from (select distinct pool from requested) as pools
)
select found.id,
       found.identifier,
       found.locked_by,
       exists (select from requested where requested.job_id = found.id)
  from found
 where (select count(*) from notified) >= 0
 order by found.id
