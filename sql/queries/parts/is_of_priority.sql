-- Whether a job is of a priority, not before the place the last page ended at, and due or of later as the state asks.
and jobs.priority = levels.priority
and jobs.run_at >= case
      when levels.priority = %(after_priority)s::smallint
      then %(after_run_at)s::timestamp at time zone 'UTC'
      else '-infinity'
    end
and jobs.run_at >= case when %(state)s::text = 'ready' then '-infinity' else now() end
and jobs.run_at <= case when %(state)s::text = 'ready' then now() else 'infinity' end
