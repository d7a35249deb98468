-- What is known of how one job ended: in the queue, in history, and whether its id was ever used.
-- One statement, so that a job that ends concurrently is visible in one of the two places.
with known as (
  select coalesce(pg_sequence_last_value(sequence.seqrelid::regclass), 0) as last_id
    from pg_sequence as sequence
    join pg_depend as dependency on dependency.objid = sequence.seqrelid and dependency.deptype = 'i'
    join pg_class as tables on tables.oid = dependency.refobjid
    join pg_namespace as namespace on namespace.oid = tables.relnamespace
   where namespace.nspname = %(schema)s::text
     and tables.relname = '_private_jobs'
     and has_sequence_privilege(sequence.seqrelid, 'usage, select')
)
select
  jobs.id is not null,
  coalesce(jobs.locked_at is null and jobs.attempts >= jobs.max_attempts, false),
  coalesce(jobs.attempts, 0)::integer,
  jobs.last_error,
  (select %(job_id)s::bigint <= known.last_id from known),
  \ir parts/history_row.sql
  history.result::text,
  history.payload::text,
  null::text
  from (values (1)) as one (n)
  left join :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs on jobs.id = %(job_id)s::bigint
  left join lateral (
    select *
      from :GRAPHILE_WORKER_SCHEMA._private_gw_history as latest
     where latest.job_id = %(job_id)s::bigint
       and latest.expires_at > now()
     order by latest.final desc, latest.finished_at desc
     limit 1
  ) as history on true
