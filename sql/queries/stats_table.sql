-- The database's clock, the size of the jobs table, and the number of queues and of locked queues.
select
  date_part('epoch', now()),
  pg_relation_size(%(jobs_table)s::regclass) / current_setting('block_size')::int,
  pg_total_relation_size(%(jobs_table)s::regclass),
  count(*),
  count(*) filter (where queues.locked_at is not null)
from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
