-- The queues in order of their names, each with its jobs among the first `chunk_size` waiting jobs of the backlog.
-- For a schema without gw's indexes, where no index leads from a queue to its jobs.
with backlog as materialized (
  select jobs.id, jobs.job_queue_id, jobs.priority, jobs.run_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.is_available = true
   order by jobs.priority, jobs.run_at
   limit %(chunk_size)s::bigint
),
unclaimed as materialized (
  select
    backlog.job_queue_id,
    count(*) as jobs,
    count(*) filter (where backlog.run_at <= now()) as due,
    coalesce(
      (array_agg(backlog.id order by backlog.priority, backlog.run_at, backlog.id)
         filter (where backlog.run_at <= now()))[1],
      (array_agg(backlog.id order by backlog.priority, backlog.run_at, backlog.id))[1]
    ) as next_job_id
  from backlog
  where backlog.job_queue_id is not null
  group by backlog.job_queue_id
)
select
  queues.queue_name,
  queues.locked_by,
  date_part('epoch', queues.locked_at),
  coalesce(unclaimed.jobs, 0),
  (select count(*) from backlog) = %(chunk_size)s::bigint,
  coalesce(unclaimed.due, 0),
  (select count(*) from backlog) = %(chunk_size)s::bigint,
  next_jobs.id,
  (select tasks.identifier from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks where tasks.id = next_jobs.task_id),
  date_part('epoch', next_jobs.run_at)
from (
  select named.id, named.queue_name, named.locked_by, named.locked_at
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as named
   where named.queue_name > %(after)s::text
     and (named.locked_at is not null or not %(only_locked)s::boolean)
     and (%(names)s::text[] is null or named.queue_name = any(%(names)s::text[]))
   order by named.queue_name
   limit %(limit)s::bigint
) as queues
left join unclaimed on unclaimed.job_queue_id = queues.id
left join :GRAPHILE_WORKER_SCHEMA._private_jobs as next_jobs on next_jobs.id = unclaimed.next_job_id
order by queues.queue_name
