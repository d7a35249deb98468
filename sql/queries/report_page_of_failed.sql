-- The next matching ones of at most `reach` jobs that failed for good, the latest failure first, and how far that looked.
-- A failure leaves no moment of its own; but the last one put `run_at` as far off as every other, so this is its order.
-- It needs our own index of failed jobs.
-- A payload with \u0000 in it cannot be taken apart by the server: that would end the whole search, so it is passed by.
with looked as materialized (
  select
    jobs.id,
    jobs.run_at,
    (
      (%(task_id)s::int is null or jobs.task_id = %(task_id)s::int)
      and (%(queue_id)s::int is null or jobs.job_queue_id = %(queue_id)s::int)
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
   where jobs.locked_at is null
     and jobs.attempts >= jobs.max_attempts
     and (jobs.run_at, jobs.id) < (%(after_run_at)s::timestamp at time zone 'UTC', %(after_id)s::bigint)
   order by jobs.run_at desc, jobs.id desc
   limit %(reach)s
),
found as (
  select * from looked where matches order by run_at desc, id desc limit %(limit)s
),
ends as (
  select * from looked order by run_at, id limit 1
),
full_ends as (
  select * from found order by run_at, id limit 1
)
select
  (select count(*) from looked),
  array(select id from found order by run_at desc, id desc),
  (select array[(run_at at time zone 'UTC')::text, id::text] from full_ends),
  (select array[(run_at at time zone 'UTC')::text, id::text] from ends)
