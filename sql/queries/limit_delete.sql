-- Remove the limit of a task.
with emptied as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_buckets where task = %(task)s::text
)
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
 where limits.task = %(task)s::text
returning limits.task
