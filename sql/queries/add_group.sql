-- Let a job wait until these jobs have ended.
with waiting as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_waiting (job, on_failure, members)
  values (%(job)s::text::json, %(on_failure)s::text, pg_catalog.cardinality(%(ids)s::bigint[]))
  returning id
),
edges as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_edges (job_id, waiting_id)
  select distinct members.job_id, waiting.id
    from waiting
   cross join pg_catalog.unnest(%(ids)s::bigint[]) as members (job_id)
)
select id from waiting
