-- How many groups have a last job that cannot be added, and the first one's id, task and error; no row: none.
select count(*) over (), waiting.id, waiting.job->>'task', waiting.error
  from :GRAPHILE_WORKER_SCHEMA._private_gw_waiting as waiting
 where waiting.error is not null
 order by waiting.id
 limit 1
