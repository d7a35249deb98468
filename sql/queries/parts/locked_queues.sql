-- The queues of the chosen jobs, locked for this worker. Such a claim waits for the disk.
locked_queues as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = now(),
         locked_by = (select case when set_config('synchronous_commit', 'on', true) is not null then %(worker_id)s::text end)
   where queues.id = any(array(select distinct job_queue_id from chosen where job_queue_id is not null))
),
