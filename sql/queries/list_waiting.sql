-- The jobs that wait for others, oldest first, with how many of these have not ended: one that waits or those that wait
-- for it, by its id; the one of a key; or all. Jobs are looked up one by one: a join could read their whole table.
-- One that is gone has ended, also before a worker takes note of that.
select
  waiting.job_id,
  (select tasks.identifier from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks where tasks.id = waits.task_id),
  waits.key,
  waiting.on_failure,
  pg_catalog.cardinality(waiting.after),
  date_part('epoch', waits.created_at),
  open.jobs,
  open.failed,
  open.first_ids
from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
cross join lateral (
  select jobs.task_id, jobs.key, jobs.created_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = waiting.job_id
     and jobs.run_at = 'infinity'
  offset 0
) as waits
cross join lateral (
  select count(*) as jobs,
         count(*) filter (where member.has_failed) as failed,
         (pg_catalog.array_agg(edges.job_id order by edges.job_id))[1:10] as first_ids
    from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
   cross join lateral (
           select jobs.locked_at is null and jobs.attempts >= jobs.max_attempts as has_failed
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.id = edges.job_id
           offset 0
         ) as member
   where edges.waiting_id = waiting.job_id
) as open
where waiting.released_at is null
  and (%(job_key)s::text is null or waits.key = %(job_key)s::text)
  and (%(job_id)s::bigint is null
   or waiting.job_id = any(array(
        select own.waiting_id from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as own where own.job_id = %(job_id)s::bigint
        union all
        select %(job_id)s::bigint
      )))
order by waiting.job_id
limit %(limit)s::bigint
