-- The next matching jobs among the locked ones, in order of their ids, and how many are locked, up to `most`.
-- Workers lock no more jobs than they run and prefetch, so each page reads all of them. This needs gw's index of locked
-- jobs; its order makes the planner use it whatever the statistics say.
with held as materialized (
  select
    jobs.id,
    (:SELECTION) is true as matches
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.locked_at is not null
   order by jobs.locked_at
   limit %(most)s::bigint
)
select
  (select count(*) from held),
  array(select id from held where matches and id > %(after_id)s::bigint order by id limit %(limit)s::bigint)
