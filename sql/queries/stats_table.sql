-- The database's clock, how large the table of jobs is, and how many queues there are and are held.
select
  date_part('epoch', now()),
  pg_relation_size(%(jobs_table)s::regclass) / current_setting('block_size')::int,
  pg_total_relation_size(%(jobs_table)s::regclass),
  count(*),
  count(*) filter (where queues.locked_at is not null)
from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
