-- How many jobs wait for others, and which of them a permanently failed one holds: their number, and the first's id and the
-- failed job. Jobs are looked up one by one: a join could read their whole table.
with held as (
  select waiting.job_id as id, min(edges.job_id) as job_id
    from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
    join :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges on edges.waiting_id = waiting.job_id
   where waiting.on_failure = 'hold'
     and waiting.released_at is null
     and (
           select jobs.locked_at is null and jobs.attempts >= jobs.max_attempts
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.id = edges.job_id
         )
   group by waiting.job_id
)
select
  (select count(*) from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting where released_at is null),
  (select count(*) from held),
  first.id,
  first.job_id
from (select) as one
left join (select id, job_id from held order by id limit 1) as first on true
