-- What ended, over all workers: in each step of time, numbered from 1970 on, or of each task if the step is null.
select
  coalesce(floor(date_part('epoch', minute) / %(step_seconds)s::double precision)::bigint::text, task),
  sum(completed)::bigint,
  sum(failed)::bigint,
  sum(permanently_failed)::bigint,
  sum(run_seconds),
  array[
    sum(durations[1]), sum(durations[2]), sum(durations[3]), sum(durations[4]), sum(durations[5]), sum(durations[6]),
    sum(durations[7]), sum(durations[8]), sum(durations[9]), sum(durations[10]), sum(durations[11]),
    sum(durations[12]), sum(durations[13]), sum(durations[14]), sum(durations[15]), sum(durations[16]),
    sum(durations[17])
  ],
  sum(waited)::bigint,
  sum(wait_seconds)
  from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics
 where minute >= date_trunc('minute', now() - make_interval(secs => %(back_seconds)s::double precision))
   and (%(task)s::text is null or task = %(task)s::text)
 group by 1
