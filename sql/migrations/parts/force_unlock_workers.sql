-- Release all locks of these workers, which must be dead: what they still run would run twice.
create or replace function :GRAPHILE_WORKER_SCHEMA.force_unlock_workers(worker_ids text[])
returns void
language sql set search_path = pg_catalog, pg_temp as $gw$
  update :GRAPHILE_WORKER_SCHEMA._private_jobs
     set locked_at = null, locked_by = null
   where locked_by = any(worker_ids);
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues
     set locked_at = null, locked_by = null
   where locked_by = any(worker_ids);
$gw$;
