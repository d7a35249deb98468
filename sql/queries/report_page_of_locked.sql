-- The next matching ones of the jobs that workers hold, in order of their ids, and how many are held, up to `most`.
-- No more are held than workers have threads and jobs claimed ahead, so that all are looked at for every page.
-- It needs our own index of locked jobs; in the order of that index it is chosen whatever the statistics say.
-- A payload with \u0000 in it cannot be taken apart by the server: that would end the whole search, so it is passed by.
with held as materialized (
  select
    jobs.id,
    (
      (%(task_id)s::int is null or jobs.task_id = %(task_id)s::int)
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
   where jobs.locked_at is not null
   order by jobs.locked_at
   limit %(most)s
)
select
  (select count(*) from held),
  array(select id from held where matches and id > %(after_id)s::bigint order by id limit %(limit)s)
