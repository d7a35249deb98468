-- Which of these jobs have a row that another session locks; deleted rows are not among them.
with free as materialized (
  select jobs.id
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
   where jobs.id = any(%(ids)s::bigint[])
     for update skip locked
)
select jobs.id
  from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
 where jobs.id = any(%(ids)s::bigint[])
   and jobs.id <> all(array(select id from free))
