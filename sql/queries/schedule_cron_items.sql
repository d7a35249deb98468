-- Add the jobs of one minute, each unless a worker in any language was here first; answers what was added by this call.
-- The worker that moves `last_execution` to the minute adds the job; a second one waits for the row, finds it moved and adds
-- nothing. Rows are locked in the order of the crontab, as Graphile Worker does: another order could deadlock with it.
with runs as materialized (
  select run.*
    from unnest(
           %(identifiers)s::text[],
           %(tasks)s::text[],
           %(payloads)s::text[],
           %(queue_names)s::text[],
           %(max_attempts)s::int[],
           %(job_keys)s::text[],
           %(priorities)s::int[],
           %(flags)s::text[],
           %(job_key_modes)s::text[],
           %(run_ats)s::timestamptz[]
         ) with ordinality
         as run (
           identifier, task, payload, queue_name, max_attempts, job_key, priority, flags, job_key_mode, run_at, place
         )
),
won as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_known_crontabs as known (identifier, known_since, last_execution)
  select runs.identifier, %(timestamp)s::timestamptz, %(timestamp)s::timestamptz
    from runs
   order by runs.place
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
   order by runs.place
)
select
  ours.identifier,
  -- In a CASE and not in a lateral join: a join's condition is evaluated after the function has run.
  case
    when ours.task is not null then (
      select job.id
        from :GRAPHILE_WORKER_SCHEMA.add_job(
               identifier => ours.task,
               payload => ours.payload::json,
               queue_name => ours.queue_name,
               run_at => ours.run_at,
               max_attempts => ours.max_attempts,
               job_key => ours.job_key,
               priority => ours.priority,
               flags =>
                 case when ours.flags is not null then array(select json_array_elements_text(ours.flags::json)) end,
               job_key_mode => ours.job_key_mode
             ) as job
    )
  end
from ours
