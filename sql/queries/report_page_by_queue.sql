-- The next matching ones of at most `reach` waiting jobs of one queue in the order in which they will run, and how far
-- that looked. It needs our own index of queue heads; like report_page_by_turn.sql it asks for each priority on its own.
-- A payload with \u0000 in it cannot be taken apart by the server: that would end the whole search, so it is passed by.
with recursive levels (priority) as (
  (
    select jobs.priority
      from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     where jobs.is_available = true
       and jobs.job_queue_id = %(queue_id)s::int
       and jobs.priority >= %(after_priority)s::smallint
     order by jobs.priority
     limit 1
  )
  union all
  select (
           select jobs.priority
             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
            where jobs.is_available = true
              and jobs.job_queue_id = %(queue_id)s::int
              and jobs.priority > levels.priority
            order by jobs.priority
            limit 1
         )
    from levels
   where levels.priority is not null
),
looked as materialized (
  select due.*, row_number() over () as turn
    from levels
   cross join lateral (
           select
             jobs.id,
             jobs.priority,
             jobs.run_at,
             jobs.id as place,
             (
               case %(state)s::text
                 when 'backoff' then jobs.attempts > 0 and jobs.last_error is not null
                 when 'scheduled' then jobs.attempts = 0 or jobs.last_error is null
                 else true
               end
               and (%(task_id)s::int is null or jobs.task_id = %(task_id)s::int)
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
            where jobs.is_available = true
              and jobs.job_queue_id = %(queue_id)s::int
              and jobs.priority = levels.priority
              and jobs.run_at >= case
                    when levels.priority = %(after_priority)s::smallint
                    then %(after_run_at)s::timestamp at time zone 'UTC'
                    else '-infinity'
                  end
              and jobs.run_at >= case when %(state)s::text = 'ready' then '-infinity' else now() end
              and jobs.run_at <= case when %(state)s::text = 'ready' then now() else 'infinity' end
              and (
                levels.priority > %(after_priority)s::smallint
                or jobs.run_at > %(after_run_at)s::timestamp at time zone 'UTC'
                or jobs.id > %(after_place)s::bigint
              )
            order by jobs.run_at, jobs.id
            limit %(reach)s
         ) as due
   limit %(reach)s
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
