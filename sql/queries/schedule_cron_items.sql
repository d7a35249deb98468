-- Add the jobs of one minute, each unless a worker in any language was here first; answers what was added by this call.
-- The worker that moves `last_execution` to the minute adds the job; a second one waits for the row, finds it moved and adds
-- nothing. A run that is due during a pause is not added; `last_execution` stays, because nothing ran.
-- Rows are locked in the order of the crontab, as Graphile Worker does: another order could deadlock with it.
with runs as materialized (
  select run.*
    from rows from (
           pg_catalog.unnest(%(identifiers)s::text[]),
           json_to_recordset(%(jobs)s::text::json) as (
             task text,
             payload json,
             queue_name text,
             run_at timestamptz,
             delay double precision,
             max_attempts int,
             job_key text,
             priority int,
             flags text[],
             job_key_mode text
           )
         ) with ordinality as run (identifier)
),
won as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_known_crontabs as known (identifier, known_since, last_execution)
  select runs.identifier, %(timestamp)s::timestamptz, %(timestamp)s::timestamptz
    from runs
   where not exists (
           select
             from :GRAPHILE_WORKER_SCHEMA._private_gw_pauses as pauses
            where pauses.kind = 'cron'
              and pauses.name = runs.identifier
              and (pauses.until is null or pauses.until > %(timestamp)s::timestamptz)
         )
   order by runs.ordinality
  on conflict (identifier) do update
     set last_execution = excluded.last_execution
   where known.last_execution is null
      or known.last_execution < excluded.last_execution
  returning known.identifier
),
-- A run without a task was skipped by a plugin: the minute counts as done, and no worker adds its job.
ours as materialized (
  select runs.*
    from runs
    join won on won.identifier = runs.identifier
   order by runs.ordinality
)
select
  ours.identifier,
  -- In a CASE and not in a lateral join: a join's condition is evaluated after the function has run.
  case
    when ours.task is not null then (
      select job.id
        from :GRAPHILE_WORKER_SCHEMA.add_job(
               identifier => ours.task,
               payload => ours.payload,
               queue_name => ours.queue_name,
               run_at => coalesce(ours.run_at, now() + make_interval(secs => ours.delay)),
               max_attempts => ours.max_attempts,
               job_key => ours.job_key,
               priority => ours.priority,
               flags => ours.flags,
               job_key_mode => ours.job_key_mode
             ) as job
    )
  end
from ours
