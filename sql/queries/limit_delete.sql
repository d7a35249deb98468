-- Remove the limit of a task.
with emptied as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_buckets where task = %(task)s
)
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
 where limits.task = %(task)s
returning limits.task
