-- Who holds the queue of a job, with the database's clock.
select
  date_part('epoch', now()),
  queues.locked_by,
  date_part('epoch', queues.locked_at)
from (select) as always
left join :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues on queues.id = %(queue_id)s::int
