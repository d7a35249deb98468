-- How many jobs failed permanently long ago; those of cleanup_failed_jobs.sql.
\set HOLDS true
\set RUN '<= now() - make_interval(secs => %(older_seconds)s::double precision)'
select count(*)
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.locked_at is null
   and jobs.attempts >= jobs.max_attempts
   \ir parts/failed_long_ago.sql
