-- The locked named queues, the oldest lock first.
-- No index leads to them, but the table has one row for each name, not for each job.
select
  queues.queue_name,
  queues.locked_by,
  date_part('epoch', queues.locked_at)
from :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
where queues.locked_at is not null
order by queues.locked_at, queues.id
limit %(queues)s::bigint
