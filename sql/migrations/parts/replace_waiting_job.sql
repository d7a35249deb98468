-- Replace the waiting job with this key; two JSON arrays become one payload.
-- Jobs that wait for it go on waiting: the flag shows this to the worker that settles it.
on conflict (key) do update
   set job_queue_id = excluded.job_queue_id,
       task_id = excluded.task_id,
       payload = case
         when json_typeof(jobs.payload) = 'array' and json_typeof(excluded.payload) = 'array'
           then (jobs.payload::jsonb || excluded.payload::jsonb)::json
         else excluded.payload
       end,
       run_at = case
         when job_key_preserve_run_at and jobs.attempts = 0 then jobs.run_at
         else excluded.run_at
       end,
       max_attempts = excluded.max_attempts,
       priority = excluded.priority,
       flags = case
         when jobs.flags ? 'gw:group' then coalesce(excluded.flags, '{}') || '{"gw:group": true}'
         else excluded.flags
       end,
       revision = jobs.revision + 1,
       attempts = 0,
       last_error = null,
       updated_at = now()
 where jobs.locked_at is null
