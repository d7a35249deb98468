-- Renew the locks of these claims and of their queues, and note when their attempts started; answers the ids still ours.
-- Graphile Worker releases locks older than four hours by `locked_at` alone, so a long job needs this. The lock moves by
-- whole multiples of ten minutes: what is left of it modulo ten minutes names the claim, see parts/is_of_claim.sql.
-- Without `:NOTES` the starts are not noted: they are only shown, and a lock that expires lets its job run twice.
\set NOTES true
with claims as (
  select *
    from unnest(%(ids)s::bigint[], %(claims)s::timestamptz[]) as claims (id, locked_at)
),
ours as materialized (
  select jobs.id, jobs.locked_at, claims.locked_at as started_at
    from :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
    join claims on claims.id = jobs.id
   where jobs.id = any(%(ids)s::bigint[])
     \set ROW jobs
     \set CLAIMS 'array[claims.locked_at]'
     \ir parts/is_of_claim.sql
   order by jobs.id
     for update of jobs
),
renewed as (
  update :GRAPHILE_WORKER_SCHEMA._private_jobs as jobs
     set locked_at = jobs.locked_at
                     + make_interval(mins => 10 * floor(date_part('epoch', now() - jobs.locked_at) / 600::float8)::int)
    from ours
   where jobs.id = ours.id
     and jobs.locked_at <= now() - interval '10 minutes'
  returning jobs.id, jobs.locked_at, ours.started_at
),
\if :NOTES
noted as (
  insert into :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks as notes (worker_id, job_id, started_at, locked_at)
  select %(worker_id)s::text, id, started_at, locked_at
    from renewed
  on conflict (worker_id, job_id) do update
    set started_at = excluded.started_at,
        locked_at = excluded.locked_at
),
ended as (
  delete from :GRAPHILE_WORKER_SCHEMA._private_gw_renewed_locks as notes
   where notes.worker_id = %(worker_id)s::text
     and notes.job_id not in (select id from ours)
),
\endif
queues as (
  update :GRAPHILE_WORKER_SCHEMA._private_job_queues as queues
     set locked_at = queues.locked_at
                     + make_interval(mins => 10 * floor(date_part('epoch', now() - queues.locked_at) / 600::float8)::int)
    from unnest(%(queue_ids)s::int[], %(queue_claims)s::timestamptz[]) as queue_claims (id, locked_at)
   where queues.id = any(%(queue_ids)s::int[])
     and queues.id = queue_claims.id
     and queues.locked_at <= now() - interval '10 minutes'
     \set ROW queues
     \set CLAIMS 'array[queue_claims.locked_at]'
     \ir parts/is_of_claim.sql
     and (select count(*) from renewed) >= 0
)
select id from ours
