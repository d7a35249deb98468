-- The next matching ones of at most `reach` jobs before an id, the newest first, and how far that looked.
-- What bounds the work is the number of jobs looked at, as in the other direction.
-- A payload with \u0000 in it cannot be taken apart by the server: that would end the whole search, so it is passed by.
with looked as materialized (
  select
    jobs.id,
    (
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
      and (%(task_id)s::int is null or jobs.task_id = %(task_id)s::int)
      and (%(queue_id)s::int is null or jobs.job_queue_id = %(queue_id)s::int)
      and (%(worker)s::text is null or jobs.locked_by = %(worker)s::text)
      and (%(flag)s::text is null or jobs.flags ? %(flag)s::text)
      and (%(error)s::text is null or strpos(lower(jobs.last_error), lower(%(error)s::text)) > 0)
      and (%(priorities)s::int4range is null or jobs.priority::int <@ %(priorities)s::int4range)
      and (%(attempts)s::int4range is null or jobs.attempts::int <@ %(attempts)s::int4range)
      and (%(run_between)s::tstzrange is null or jobs.run_at <@ %(run_between)s::tstzrange)
      and (%(locked_between)s::tstzrange is null or jobs.locked_at <@ %(locked_between)s::tstzrange)
      and (%(payload_text)s::text is null or strpos(lower(jobs.payload::text), lower(%(payload_text)s::text)) > 0)
      and case
            when %(payload_path)s::text[] is null then true
            when strpos(jobs.payload::text, '\u0000') > 0 then false
            else jobs.payload #>> %(payload_path)s::text[] = %(payload_value)s::text
          end
    ) is true as matches
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id < %(before_id)s::bigint
   order by jobs.id desc
   limit %(reach)s
)
select
  (select count(*) from looked),
  (select min(id) from looked),
  array(select id from looked where matches order by id desc limit %(limit)s)
