-- Release the queues that are locked although none of their jobs is; returns their names.
-- Those of gw's workers with a heartbeat are left to them: they compare their locks with their ledgers.
with
\ir parts/orphaned_queues.sql
,
found as materialized (
  select queues.id
    from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
    join orphaned on orphaned.id = queues.id
   where queues.locked_at = orphaned.locked_at
     and queues.locked_by is not distinct from orphaned.locked_by
     and not exists (
           select
             from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
            where workers.id = orphaned.locked_by
         )
   order by queues.id
     for update of queues skip locked
)
update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
   set locked_at = null,
       locked_by = null
 where queues.id = any(array(select found.id from found))
returning queues.queue_name
