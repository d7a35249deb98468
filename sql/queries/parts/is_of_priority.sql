-- Whether a job has a priority, is not before the cursor, and is due now or later as the states of the selection allow.
and jobs.priority = levels.priority
and jobs.run_at >= case
      when levels.priority = %(after_priority)s::smallint
      then %(after_run_at)s::timestamp at time zone 'UTC'
      else '-infinity'
    end
and jobs.run_at >= case when %(with_due)s then '-infinity' else now() end
and jobs.run_at <= case when %(with_later)s then 'infinity' else now() end
