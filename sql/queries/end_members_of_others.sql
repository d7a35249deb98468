-- Let the jobs go on that wait for jobs which others have ended: workers in other languages, SQL, a worker that died.
-- Returns how many wait no longer. The jobs are looked up one by one: a join could read their whole table.
-- Where no job waits, the function is not called: its first call in a session takes some milliseconds.
select case
         when exists (select from :GRAPHILE_WORKER_SCHEMA._private_gw_edges)
         then :GRAPHILE_WORKER_SCHEMA._private_gw_end_members(
                array(
                  select distinct edges.job_id
                    from :GRAPHILE_WORKER_SCHEMA._private_gw_edges as edges
                   where (
                           select jobs.locked_at is not null or jobs.attempts < jobs.max_attempts
                             from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
                            where jobs.id = edges.job_id
                         ) is not true
                ),
                kept_tasks => %(tasks)s::text[],
                kept_seconds => %(keep_seconds)s::double precision[]
              )
         else 0
       end
