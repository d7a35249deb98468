-- What ended lately of each task, over all workers.
select task,
       \ir parts/run_statistics.sql
  from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics
 where minute >= date_trunc('minute', now() - make_interval(secs => %(back_seconds)s::double precision))
 group by task
