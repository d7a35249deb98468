-- Whether a worker may run a waiting job now, if its queue is free.
and jobs.run_at <= coalesce(%(now)s::timestamptz, now())
and jobs.task_id = any(%(task_ids)s::int[])
and (%(forbidden_flags)s::text[] is null or (jobs.flags ?| %(forbidden_flags)s::text[]) is not true)
