-- Drop the trigger functions that nothing has called since revision 11, and let operators free a dead worker's locks.

drop function if exists :GRAPHILE_WORKER_SCHEMA.jobs__decrease_job_queue_count();
drop function if exists :GRAPHILE_WORKER_SCHEMA.jobs__increase_job_queue_count();
drop function if exists :GRAPHILE_WORKER_SCHEMA.tg__update_timestamp();

create or replace function :GRAPHILE_WORKER_SCHEMA.force_unlock_workers(worker_ids text[])
returns void
language sql as $gw$
  update :GRAPHILE_WORKER_SCHEMA.jobs
     set locked_at = null, locked_by = null
   where locked_by = any(worker_ids);
  update :GRAPHILE_WORKER_SCHEMA.job_queues
     set locked_at = null, locked_by = null
   where locked_by = any(worker_ids);
$gw$;
