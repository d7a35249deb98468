-- Delete the buckets of a task's values that are full again: a value without a bucket has a full one.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_buckets as buckets
 using :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
 where limits.task = %(task)s::text
   and buckets.task = limits.task
   and buckets.value <> ''
   and buckets.tokens
       + date_part('epoch', now() - buckets.filled_at) * limits.per_period / limits.period_seconds >= limits.burst
