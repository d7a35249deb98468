-- How many jobs of a job's task are locked that have the same value of a field as this job.
with locked as materialized (
  select jobs.task_id, jobs.payload
   \ir parts/from_locked_jobs.sql
)
select count(*)::integer
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as waiting
  join locked on locked.task_id = waiting.task_id
 where waiting.id = %(id)s::bigint
   and :GRAPHILE_WORKER_SCHEMA._private_gw_field_value(locked.payload, %(field)s::text)
       = :GRAPHILE_WORKER_SCHEMA._private_gw_field_value(waiting.payload, %(field)s::text)
