-- The number of permanently failed jobs, up to `most`. This needs gw's index of failed jobs.
select count(*)
  from (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.locked_at is null
            and jobs.attempts >= jobs.max_attempts
          order by jobs.run_at desc, jobs.id desc
          limit %(most)s::bigint
       ) as failed
