-- How many jobs have failed for good, up to `most`. It needs our own index of failed jobs.
select count(*)
  from (
         select
           from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
          where jobs.locked_at is null
            and jobs.attempts >= jobs.max_attempts
          order by jobs.run_at desc, jobs.id desc
          limit %(most)s
       ) as failed
