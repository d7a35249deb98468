-- Whether more than `most` waiting jobs share one priority and run_at, the last page of the table, and the next run_at.
select
  (select count(*) > %(most)s
     from (
       select
         from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
        where jobs.is_available = true
          and jobs.priority = %(after_priority)s::smallint
          and jobs.run_at = %(after_run_at)s::timestamp at time zone 'UTC'
        limit %(most)s + 1
     ) as equals),
  pg_relation_size(%(jobs_table)s::regclass) / current_setting('block_size')::int,
  (%(after_run_at)s::timestamp + interval '1 microsecond')::text
