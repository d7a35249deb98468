-- The ended attempts of one job, the first one first.
select
  \ir parts/history_row.sql
  history.result::text,
  history.payload::text,
  history.traceback
  from :GRAPHILE_WORKER_SCHEMA._private_gw_history as history
 where history.job_id = %(job_id)s::bigint
   and history.expires_at > now()
 order by history.finished_at, history.attempt
