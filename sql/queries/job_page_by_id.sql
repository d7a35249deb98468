-- The next matching jobs among at most `chunk_size` jobs from an id on, and where that chunk ended: in order of their
-- ids, or the newest first.
-- The number of jobs read limits the work, because no index serves every condition.
\set SIDE '>'
\set ORDER asc
\set LAST max
with scanned as materialized (
  select
    jobs.id,
    (:SELECTION) is true as matches
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id :SIDE %(from_id)s::bigint
   order by jobs.id :ORDER
   limit %(chunk_size)s::bigint
)
select
  (select count(*) from scanned),
  (select :LAST(id) from scanned),
  array(select id from scanned where matches order by id :ORDER limit %(limit)s::bigint)
