-- The tasks whose attempts failed lately, as workers recorded them: how many failed, how many ended, and in which minutes
-- the first and the last of them failed. A minute is recorded when it has ended.
select task,
       sum(failed)::bigint,
       sum(completed + failed)::bigint,
       date_part('epoch', min(minute) filter (where failed > 0)),
       date_part('epoch', max(minute) filter (where failed > 0))
  from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics
 where minute >= date_trunc('minute', now() - make_interval(secs => %(lately)s::double precision))
 group by task
having sum(failed) > 0
