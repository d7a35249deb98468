-- Release the queues with these names that a pause has locked.
-- A job that has been running since before the pause gets its queue's lock back, so that the queue stays serial: its
-- worker then releases the queue. Jobs are locked before queues, as in every other statement.
with named as materialized (
  select queues.id, queues.queue_name
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   where queues.queue_name = any(%(names)s::text[])
     and queues.locked_by = %(prefix)s::text || queues.queue_name
),
locked as materialized (
  select jobs.id, jobs.job_queue_id
   \ir parts/from_locked_jobs.sql
),
running as materialized (
  select jobs.id, jobs.job_queue_id, jobs.locked_by, jobs.locked_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(array(select locked.id from locked where locked.job_queue_id in (select id from named)))
     and jobs.locked_at is not null
   order by jobs.id
     for update
),
released as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_by = (select running.locked_by from running where running.job_queue_id = queues.id limit 1),
         locked_at = (select running.locked_at from running where running.job_queue_id = queues.id limit 1)
    from named
   where queues.id = named.id
     and queues.locked_by = %(prefix)s::text || queues.queue_name
     and (select count(*) from running) >= 0
  returning queues.locked_at is null as is_free
)
select pg_notify('jobs:insert', '{"r":' || random()::text || ',"count":1}')
  from released
 where is_free
 limit 1
