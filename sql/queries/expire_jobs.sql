-- Fail jobs permanently that did not start in time, at most 300, delete their entries, and return them as they were.
-- A job has not started while it has no error and no attempt. One that a worker holds is checked again in a minute:
-- it runs, or its worker returns or fails it. So is one whose row another session has locked; nothing waits here.
-- History has them for as long as the worker keeps their task, or as it keeps other jobs of the task.
\set JOB held
\set FLAGS jobs.flags
\set PAYLOAD 'held.payload::text'
with due as materialized (
  select listed.job_id
    from :GRAPHILE_WORKER_SCHEMA._private_gw_expiring as listed
   where listed.expires_at <= now()
   order by listed.expires_at
   limit 300
     for update skip locked
),
held as materialized (
  select jobs.*, expiring.expires_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   cross join lateral (
           select
             \ir parts/expires_at.sql
             as expires_at
         ) as expiring
   where jobs.id = any(array(select due.job_id from due))
     and jobs.locked_at is null
     and jobs.last_error is null
     and jobs.attempts = 0
     and expiring.expires_at <= now()
   order by jobs.id
     for update of jobs skip locked
),
expired as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set attempts = jobs.max_attempts,
         last_error = 'expired: did not start by ' || to_char(held.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24":"MI":"SS"Z"'),
         updated_at = now()
    from held
   where jobs.id = any(array(select held.id from held))
     and jobs.id = held.id
  returning jobs.id, jobs.last_error
),
postponed as (
  update :GRAPHILE_WORKER_SCHEMA._private_gw_expiring as listed
     set expires_at = now() + interval '1 minute'
   where listed.job_id = any(array(select due.job_id from due where due.job_id not in (select held.id from held)))
),
delisted as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_expiring as listed
   where listed.job_id = any(array(select held.id from held))
),
kept as (
  select *
    from unnest(%(tasks)s::text[], %(keep_seconds)s::double precision[]) as kept (task, seconds)
),
recorded as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_history (
    job_id, attempt, max_attempts, task, queue_name, key, state, final, error, error_type, created_at, finished_at,
    expires_at
  )
  select ended.id,
         0,
         ended.max_attempts,
         ended.task,
         ended.queue_name,
         ended.key,
         'failed',
         false,
         ended.error,
         %(error_type)s::text,
         ended.created_at,
         now(),
         now() + ended.period
    from (
      select held.id,
             held.max_attempts,
             tasks.identifier as task,
             queues.queue_name,
             held.key,
             expired.last_error as error,
             held.created_at,
             coalesce(
               make_interval(secs => kept.seconds),
               (
                 select latest.expires_at - latest.finished_at
                   from :GRAPHILE_WORKER_SCHEMA._private_gw_history as latest
                  where latest.task = tasks.identifier
                  order by latest.finished_at desc
                  limit 1
               )
             ) as period
        from held
        join expired on expired.id = held.id
        join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = held.task_id
        left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = held.job_queue_id
        left join kept on kept.task = tasks.identifier
    ) as ended
   where ended.period is not null
),
notified as (
  select pg_notify('gw:done'::text, string_agg(held.id::text, ','::text)) from held having count(*) > 0
)
select
  \ir parts/job_columns.sql
from held
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = held.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = held.job_queue_id
where (select count(*) from expired) >= 0
  and (select count(*) from notified) >= 0
order by held.id
