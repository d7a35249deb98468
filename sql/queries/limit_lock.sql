-- Lock the limit of a task until the transaction ends, so that one worker at a time claims its jobs; no row: another
-- session has it, or the task no longer has a limit. Returns the field that it counts by, and whether that has an index:
-- without it, each claim would sort the backlog.
-- A worker that stops within this transaction, for example a frozen one, must not keep all others waiting.
\set TASK '%(task_id)s::integer'
select limits.task,
       set_config('idle_in_transaction_session_timeout', '5s', true),
       limits.field,
       limits.field is not null
       and
       \ir parts/has_field_index.sql
  from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
 where limits.task = %(task)s::text
   for update skip locked
