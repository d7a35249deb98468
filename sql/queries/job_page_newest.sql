-- The next matching ones of at most `reach` jobs before an id, the newest first, and how far that looked.
-- What bounds the work is the number of jobs looked at, as in the other direction.
with looked as materialized (
  select
    jobs.id,
    (
      \ir parts/is_in_state.sql
      and (%(task_id)s::int is null or jobs.task_id = %(task_id)s::int)
      and (%(queue_id)s::int is null or jobs.job_queue_id = %(queue_id)s::int)
      and (%(worker)s::text is null or jobs.locked_by = %(worker)s::text)
      \ir parts/meets_conditions.sql
    ) is true as matches
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id < %(before_id)s::bigint
   order by jobs.id desc
   limit %(reach)s
)
select
  (select count(*) from looked),
  (select min(id) from looked),
  array(select id from looked where matches order by id desc limit %(limit)s)
