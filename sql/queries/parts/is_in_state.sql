-- Whether a job is in the state that is looked for; true when none is.
case %(state)s::text
  when 'running' then jobs.locked_at is not null
  when 'failed' then jobs.locked_at is null and jobs.attempts >= jobs.max_attempts
  when 'ready' then jobs.is_available and jobs.run_at <= now()
  when 'backoff' then
    jobs.is_available and jobs.run_at > now() and jobs.attempts > 0 and jobs.last_error is not null
  when 'scheduled' then
    jobs.is_available and jobs.run_at > now() and (jobs.attempts = 0 or jobs.last_error is null)
  else true
end
