-- The columns of a job that was added, `job`, in the order of `Job`. The caller knows the names of its task and queue,
-- unless the job `may_exist`: the one that is there can have others. Names that the function has just added are not in
-- the statement's snapshot, and then they are the caller's. A job that has ended has no task here.
job.id,
coalesce(
  case
    when %(may_exist)s::boolean then (
      select tasks.identifier
        from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
       where tasks.id = job.task_id
    )
  end,
  %(identifier)s::text
),
job.payload::text,
job.attempts,
job.max_attempts,
job.priority,
date_part('epoch', job.run_at),
date_part('epoch', job.created_at),
date_part('epoch', job.updated_at),
job.revision,
job.key,
job.flags::text,
job.job_queue_id,
case
  when not %(may_exist)s::boolean or job.task_id is null then %(queue_name)s::text
  when job.job_queue_id is not null then coalesce(
    (
      select queues.queue_name
        from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
       where queues.id = job.job_queue_id
    ),
    %(queue_name)s::text
  )
end,
job.last_error,
date_part('epoch', job.locked_at),
job.locked_by
