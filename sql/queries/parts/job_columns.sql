-- A job's columns, behind its id, task and payload and before who locked it, in the order in which they are read.
:JOB.attempts,
:JOB.max_attempts,
:JOB.priority,
date_part('epoch', :JOB.run_at),
date_part('epoch', :JOB.created_at),
date_part('epoch', :JOB.updated_at),
:JOB.revision,
:JOB.key,
:JOB.flags::text,
:JOB.job_queue_id,
queues.queue_name,
:JOB.last_error,
date_part('epoch', :JOB.locked_at),
date_part(
  'epoch',
  \ir started_at.sql
),
