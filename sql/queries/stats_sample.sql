-- Jobs by task and state in a share of the table's pages; all of them when the share is 100. For each: how many failed an
-- attempt lately, and since when the first of them fails, is due, or runs.
-- A job's row does not record when its attempts failed: `run_at` is the last failure plus the backoff. The delays of its
-- attempts lead back from there to its first failure; a job fails no longer than it exists. After a failure without the
-- usual backoff, the time is wrong, but rarely lately. `run_at` is no time to wait from while a job is running.
select
  sampled.task_id,
  sampled.state,
  count(*),
  count(*) filter (
    where sampled.has_failed
      and sampled.failed_at > now() - make_interval(secs => %(lately)s::double precision)
      and sampled.failed_at <= now()
  ),
  date_part('epoch', min(
    case
      when sampled.has_failed
      then greatest(sampled.created_at, least(sampled.failed_at, now()) - make_interval(secs => sampled.delays))
    end
  )),
  date_part('epoch', min(sampled.run_at) filter (where isfinite(sampled.run_at))),
  date_part('epoch', min(sampled.locked_at))
from (
  select
    jobs.task_id,
    \ir parts/state_of_job.sql
    as state,
    jobs.locked_at is null and jobs.attempts > 0 and jobs.last_error is not null and isfinite(jobs.run_at) as has_failed,
    jobs.run_at - make_interval(secs => exp(least(jobs.attempts, 10)::float8)) as failed_at,
    (exp(least(jobs.attempts, 11)::float8) - exp(1::float8)) / (exp(1::float8) - 1)
      + greatest(jobs.attempts - 11, 0) * exp(10::float8) as delays,
    jobs.created_at,
    jobs.run_at,
    jobs.locked_at
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs tablesample system (%(percent)s::float4)
) as sampled
group by sampled.task_id, sampled.state
