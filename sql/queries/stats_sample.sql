-- Jobs by task and state in a share of the table's pages; all of them when the share is 100.
select
  sampled.task_id,
  sampled.state,
  count(*)
from (
  select
    jobs.task_id,
    case
      when jobs.locked_at is not null then 'running'
      when jobs.attempts >= jobs.max_attempts then 'failed'
      when jobs.run_at <= now() then 'ready'
      when jobs.attempts > 0 and jobs.last_error is not null then 'backoff'
      else 'scheduled'
    end as state
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs tablesample system (%(percent)s::float4)
) as sampled
group by sampled.task_id, sampled.state
