-- Release all locks of these workers. What they still run may then run a second time elsewhere.
-- Jobs and queues are read by one scan; the schema's function uses two. A dead worker's last claim can commit between
-- two scans, for example after waiting for a standby: then its queue would be released and its job stay locked, and
-- later jobs of the queue would overtake it.
with locked as materialized (
  select jobs.id, jobs.locked_by
   \ir parts/from_locked_jobs.sql
),
unlocked as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set locked_at = null,
         locked_by = null
   where jobs.id = any(array(select locked.id from locked where locked.locked_by = any(%(worker_ids)s::text[])))
     and jobs.locked_by = any(%(worker_ids)s::text[])
  returning jobs.id
),
freed as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = null,
         locked_by = null
   where queues.locked_by = any(%(worker_ids)s::text[])
     and (select count(*) from unlocked) >= 0
  returning queues.id
)
select (select count(*) from unlocked), (select count(*) from freed)
