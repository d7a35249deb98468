-- The state of a job; gw_core/domain/job/job_state.py describes each.
case
  when jobs.locked_at is not null then 'running'
  when jobs.attempts >= jobs.max_attempts then 'failed'
  when jobs.run_at <= now() then 'ready'
  when jobs.run_at = 'infinity' then 'waiting'
  when jobs.attempts > 0 and jobs.last_error is not null then 'backoff'
  else 'scheduled'
end
