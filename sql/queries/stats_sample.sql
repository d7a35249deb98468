-- Jobs by task and state in a share of the table's pages; all of them when the share is 100. For each: how many failed an
-- attempt lately, and since when the first of them fails, is due, or runs.
-- A job's row does not record when its attempts failed. The delays of its attempts lead back from its last change to its
-- first failure; a job fails no longer than it exists. `run_at` is no time to wait from while a job is running.
select
  sampled.task_id,
  sampled.state,
  count(*),
  count(*) filter (where sampled.has_failed and sampled.updated_at > now() - make_interval(secs => %(lately)s::double precision)),
  date_part('epoch', min(
    case
      when sampled.has_failed
      then greatest(sampled.created_at, sampled.updated_at - make_interval(secs => sampled.delays))
    end
  )),
  date_part('epoch', min(sampled.run_at) filter (where isfinite(sampled.run_at))),
  date_part('epoch', min(sampled.locked_at))
from (
  select
    jobs.task_id,
    \ir parts/state_of_job.sql
    as state,
    jobs.locked_at is null and jobs.attempts > 0 and jobs.last_error is not null as has_failed,
    (exp(least(jobs.attempts, 11)::float8) - exp(1::float8)) / (exp(1::float8) - 1)
      + greatest(jobs.attempts - 11, 0) * exp(10::float8) as delays,
    jobs.created_at,
    jobs.updated_at,
    jobs.run_at,
    jobs.locked_at
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs tablesample system (%(percent)s::float4)
) as sampled
group by sampled.task_id, sampled.state
