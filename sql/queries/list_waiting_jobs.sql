-- The waiting jobs as the session's transaction sees them, in the order in which workers take them.
\ir parts/job_with_payload.sql
where jobs.is_available
  and (%(task)s::text is null or tasks.identifier = %(task)s)
order by jobs.priority, jobs.run_at, jobs.id
limit %(limit)s::int
