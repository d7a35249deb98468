-- How long ago workers said that they live, and which tasks they know. Only where our own line is installed.
select workers.id,
       extract(epoch from clock_timestamp() - workers.last_heartbeat_at)::float8,
       array(
         select task.name
           from jsonb_array_elements_text(
                  case when jsonb_typeof(workers.metadata -> 'tasks') = 'array'
                       then workers.metadata -> 'tasks' else '[]' end
                ) as task (name)
       )
  from :GRAPHILE_WORKER_SCHEMA._private_gw_workers as workers
