-- The names of the task and the queue of an added `job`, as far as the statement's snapshot has them.
cross join lateral (
  select (
           select tasks.identifier
             from :GRAPHILE_WORKER_SCHEMA._private_tasks as tasks
            where tasks.id = job.task_id
         ) as task,
         (
           select queues.queue_name
             from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
            where queues.id = job.job_queue_id
         ) as queue_name
) as stored
