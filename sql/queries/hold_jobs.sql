-- Hold the next jobs of a selection until the transaction ends, and say who runs them.
-- The rows are locked in the order of their ids, as the settling statements do, so that neither waits for the other in a
-- circle. What changed while we waited is judged again by the conditions here: a job that no longer matches is not held.
select jobs.id,
       tasks.identifier,
       jobs.locked_by,
       jobs.locked_at >= now() - interval '4 hours',
       jobs.attempts >= jobs.max_attempts,
       jobs.last_error is not null
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
  join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
  left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
 cross join lateral (
         select case
                  when jobs.locked_at is not null then 'running'
                  when jobs.attempts >= jobs.max_attempts then 'failed'
                  when jobs.run_at <= now() then 'ready'
                  when jobs.attempts > 0 and jobs.last_error is not null then 'backoff'
                  else 'scheduled'
                end
       ) as state (name)
 where jobs.id > %(after)s::bigint
   and jobs.id <= %(through)s::bigint
   and (%(ids)s::bigint[] is null or jobs.id = any(%(ids)s::bigint[]))
   and (%(key)s::text is null or jobs.key = %(key)s::text)
   and (%(state)s::text is null or state.name = %(state)s::text)
   and (%(task)s::text is null or tasks.identifier = %(task)s::text)
   and (%(queue)s::text is null or queues.queue_name = %(queue)s::text)
   and (%(worker)s::text is null or jobs.locked_by = %(worker)s::text)
   and (%(flag)s::text is null or jobs.flags ? %(flag)s::text)
   and (%(error)s::text is null or position(lower(%(error)s::text) in lower(jobs.last_error)) > 0)
 order by jobs.id
 limit %(limit)s
   for update of jobs
