-- The next matching jobs among at most `chunk_size` jobs after an id, and where that chunk ended.
-- The number of jobs read limits the work, because no index serves every condition.
with scanned as materialized (
  select
    jobs.id,
    (:SELECTION) is true as matches
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id > %(after_id)s::bigint
   order by jobs.id
   limit %(chunk_size)s
)
select
  (select count(*) from scanned),
  (select max(id) from scanned),
  array(select id from scanned where matches order by id limit %(limit)s)
