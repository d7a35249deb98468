-- The next matching ones of at most `reach` waiting jobs of one priority and moment, on the pages up to a bound, in the
-- order of their places, and how far that looked.
--
-- After a bulk insert these can be millions, and the index leads to the first of them only; a place leads to its page.
-- There is no order by: by pages and by the index alike, equals come in the order of their places, and a sort would read
-- all of them first. Before PostgreSQL 14 pages cannot be asked for, and the index is walked.
-- A payload with \u0000 in it cannot be taken apart by the server: that would end the whole search, so it is passed by.
with looked as materialized (
  select near.*, row_number() over () as turn
    from (
           select
             jobs.id,
             jobs.priority,
             jobs.run_at,
             jobs.ctid as place,
             (
               case %(state)s::text
                 when 'backoff' then jobs.attempts > 0 and jobs.last_error is not null
                 when 'scheduled' then jobs.attempts = 0 or jobs.last_error is null
                 else true
               end
               and (%(task_id)s::int is null or jobs.task_id = %(task_id)s::int)
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
            where jobs.ctid > %(after_place)s::tid
              and jobs.ctid < %(before_place)s::tid
              and jobs.is_available = true
              and jobs.priority = %(after_priority)s::smallint
              and jobs.run_at = %(after_run_at)s::timestamp at time zone 'UTC'
            limit %(reach)s
         ) as near
),
found as (
  select * from looked where matches order by turn limit %(limit)s
),
ends as (
  select * from looked order by turn desc limit 1
),
full_ends as (
  select * from found order by turn desc limit 1
)
select
  (select count(*) from looked),
  array(select id from found order by turn),
  (select array[priority::text, (run_at at time zone 'UTC')::text, place::text] from full_ends),
  (select array[priority::text, (run_at at time zone 'UTC')::text, place::text] from ends)
