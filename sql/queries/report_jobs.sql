-- Jobs by their ids or a key, with the database's clock; the payload only when asked for.
select
  jobs.id,
  tasks.identifier,
  case when %(with_payload)s then jobs.payload::text else '' end,
  jobs.attempts,
  jobs.max_attempts,
  jobs.priority,
  date_part('epoch', jobs.run_at),
  date_part('epoch', jobs.created_at),
  date_part('epoch', jobs.updated_at),
  jobs.revision,
  jobs.key,
  jobs.flags::text,
  jobs.job_queue_id,
  queues.queue_name,
  jobs.last_error,
  date_part('epoch', jobs.locked_at),
  jobs.locked_by,
  case
    when jobs.locked_at is not null then 'running'
    when jobs.attempts >= jobs.max_attempts then 'failed'
    when jobs.run_at <= now() then 'ready'
    when jobs.attempts > 0 and jobs.last_error is not null then 'backoff'
    else 'scheduled'
  end
from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
join :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks on tasks.id = jobs.task_id
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = jobs.job_queue_id
where jobs.id = any(
        array(
          select unnest(%(ids)s::bigint[])
          union
          select keyed.id
            from :GRAPHILE_WORKER_SCHEMA._private_jobs as keyed
           where keyed.key = %(key)s::text
        )
      )
order by jobs.id
