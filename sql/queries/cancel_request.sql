-- Wish that running jobs be cancelled, and tell the pools that run them; answers each job as it is found.
-- Whoever does not listen finds the wish with its next heartbeat. Only our pools know how; the names of others differ.
-- Wishes nobody took within an hour are thrown away: their pools are gone, and job ids do not come back.
with forgotten as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations
   where asked_at < now() - interval '1 hour'
),
found as materialized (
  select jobs.id, tasks.identifier, jobs.locked_by, jobs.locked_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
    join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
   where jobs.id = any(%(ids)s::bigint[])
),
wished as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations (pool, job_id, message, retry, locked_at)
  select locked_by, id, %(message)s, %(retry)s, locked_at
    from found
   where locked_by ~ %(cancellable_workers)s
  on conflict (pool, job_id) do update
    set message = excluded.message,
        retry = excluded.retry,
        asked_at = excluded.asked_at,
        locked_at = excluded.locked_at
  returning pool, job_id
),
told as (
  select pg_notify('gw:' || md5(pool), 'wish')
    from (select distinct pool from wished) as pools
)
select found.id,
       found.identifier,
       found.locked_by,
       exists (select from wished where wished.job_id = found.id)
  from found
 where (select count(*) from told) >= 0
 order by found.id
