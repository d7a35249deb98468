-- Whether a waiting job is in the state that is looked for, as far as its moment does not tell.
case %(state)s::text
  when 'backoff' then jobs.attempts > 0 and jobs.last_error is not null
  when 'scheduled' then jobs.attempts = 0 or jobs.last_error is null
  else true
end
