-- Whether a job is one of those that are acted on.
and (%(key)s::text is null or jobs.key = %(key)s::text)
and (%(state)s::text is null or state.name = %(state)s::text)
and (%(task)s::text is null or tasks.identifier = %(task)s::text)
and (%(queue)s::text is null or queues.queue_name = %(queue)s::text)
and (%(worker)s::text is null or jobs.locked_by = %(worker)s::text)
and (%(flag)s::text is null or jobs.flags ? %(flag)s::text)
and (%(error)s::text is null or position(lower(%(error)s::text) in lower(jobs.last_error)) > 0)
