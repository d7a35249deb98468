-- Who locks the queue of a job, and how many of the first `most` jobs before this one in the queue are due; the
-- database's clock comes first. Without gw's index of queued jobs, `most` is 0: counting would read the backlog.
select
  date_part('epoch', now()),
  queues.locked_by,
  date_part('epoch', queues.locked_at),
  ahead.due,
  ahead.jobs = %(most)s::bigint
from (
  select
    count(*) filter (where earlier.run_at <= now()) as due,
    count(*) as jobs
  from (
    select jobs.run_at
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
       and jobs.job_queue_id = %(queue_id)s::int
       and (jobs.priority, jobs.run_at, jobs.id) < (
             select own.priority, own.run_at, own.id
               from :GRAPHILE_WORKER_SCHEMA._private_jobs as own
              where own.id = %(id)s::bigint
           )
     order by jobs.priority, jobs.run_at, jobs.id
     limit %(most)s::bigint
  ) as earlier
) as ahead
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = %(queue_id)s::int
