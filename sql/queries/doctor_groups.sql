-- How many groups wait, and which of them a permanently failed member holds: their number, and the first's id and member.
with held as (
  select waiting.id, min(jobs.id) as job_id
    from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
    join :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges on edges.waiting_id = waiting.id
    join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs on jobs.id = edges.job_id
   where waiting.on_failure = 'hold'
     and jobs.locked_at is null
     and jobs.attempts >= jobs.max_attempts
   group by waiting.id
)
select
  (select count(*) from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting),
  (select count(*) from held),
  first.id,
  first.job_id
from (select) as one
left join (select id, job_id from held order by id limit 1) as first on true
