-- Ended attempts, the latest first, from a place on.
-- The planner takes the range of an index on finished_at from the comparison of rows.
select
  \ir parts/history_row.sql
  case when %(with_result)s::boolean then history.result::text end,
  case when %(with_payload)s::boolean then history.payload::text end,
  null::text
  from :GRAPHILE_WORKER_SCHEMA._private_gw_history as history
 where history.expires_at > now()
   and (history.finished_at, history.job_id, history.attempt)
       < (%(finished_at)s::timestamptz, %(job_id)s::bigint, %(attempt)s::integer)
   and :SELECTION
 order by history.finished_at desc, history.job_id desc, history.attempt desc
 limit %(limit)s::bigint
