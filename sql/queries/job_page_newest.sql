-- The next matching jobs among at most `chunk_size` jobs before an id, the newest first, and where that chunk ended.
-- The number of jobs read limits the work, as in the other direction.
with scanned as materialized (
  select
    jobs.id,
    (:SELECTION) is true as matches
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id < %(before_id)s::bigint
   order by jobs.id desc
   limit %(chunk_size)s
)
select
  (select count(*) from scanned),
  (select min(id) from scanned),
  array(select id from scanned where matches order by id desc limit %(limit)s)
