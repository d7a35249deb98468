-- What ended in each step of time, over all workers; the steps are numbered from 1970 on.
select floor(date_part('epoch', minute) / %(step_seconds)s::double precision)::bigint,
       \ir parts/run_statistics.sql
  from :GRAPHILE_WORKER_SCHEMA._private_gw_statistics
 where minute >= now() - make_interval(secs => %(back_seconds)s::double precision)
   and (%(task)s::text is null or task = %(task)s::text)
 group by 1
