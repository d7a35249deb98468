-- Jobs by task and state in a share of the table's pages; all of them when the share is 100.
select
  sampled.task_id,
  sampled.state,
  count(*)
from (
  select
    jobs.task_id,
    \ir parts/state_of_job.sql
    as state
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs tablesample system (%(percent)s::float4)
) as sampled
group by sampled.task_id, sampled.state
