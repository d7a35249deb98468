-- The queues that are locked although none of their jobs is; a paused queue has a lock without a job.
-- Every implementation locks and releases a queue in the statement that does so with the job. A worker in another
-- language leaves a lock if its job ends while the queue is resumed, see pause_release_queues.sql.
-- With as many locked jobs as that part reads, nothing is known of any queue. `locked_by` makes the rows wider: without
-- statistics, the planner would sort the whole table in memory instead of reading the index of locked jobs.
locked as materialized (
  select jobs.job_queue_id, jobs.locked_by
   \ir parts/from_locked_jobs.sql
),
orphaned as materialized (
  select queues.id, queues.queue_name, queues.locked_at, queues.locked_by
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   where queues.locked_at is not null
     and starts_with(queues.locked_by, 'gw-pause:') is not true
     and not exists (select from locked where locked.job_queue_id = queues.id)
     and (select count(*) from locked) < 100000
)
