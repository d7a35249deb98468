-- The jobs after an id of a selection that names them one by one, by ids or keys, which indexes lead to.
select jobs.id
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.id > %(after_id)s::bigint
   and :SELECTION
 order by jobs.id
 limit %(limit)s::bigint
