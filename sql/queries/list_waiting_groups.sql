-- The groups whose last job waits, oldest first, with the members that have not ended: those of one member, those whose
-- last job has a key, or all.
select
  waiting.id,
  waiting.job operator(pg_catalog.->>) 'task'::text,
  waiting.job operator(pg_catalog.->>) 'job_key'::text,
  waiting.on_failure,
  waiting.members,
  date_part('epoch', waiting.created_at),
  pg_catalog.count(edges.job_id),
  count(*) filter (where jobs.locked_at is null and jobs.attempts >= jobs.max_attempts),
  waiting.error
from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
left join :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges on edges.waiting_id = waiting.id
left join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs on jobs.id = edges.job_id
where (%(job_key)s::text is null or waiting.job operator(pg_catalog.->>) 'job_key'::text = %(job_key)s::text)
  and (%(job_id)s::bigint is null
   or waiting.id = any(array(
        select own.waiting_id from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as own where own.job_id = %(job_id)s::bigint
      )))
group by waiting.id
order by waiting.id
limit %(limit)s::bigint
