-- The pools that write heartbeats, and the tasks each said it knows.
select
  workers.id,
  date_part('epoch', workers.last_heartbeat_at),
  case
    when jsonb_typeof(workers.metadata -> 'tasks') = 'array'
    then array(select jsonb_array_elements_text(workers.metadata -> 'tasks'))
  end
from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
order by workers.id
limit 10000
