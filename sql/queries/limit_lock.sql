-- Lock the limit of a task until the transaction ends, so that one worker at a time claims its jobs; no row: another
-- session has it, or the task has no limit any more.
-- A worker that stops within this transaction, for example a frozen one, must not keep all others waiting.
select limits.task, set_config('idle_in_transaction_session_timeout', '5s', true)
  from :GRAPHILE_WORKER_SCHEMA._private_gw_limits as limits
 where limits.task = %(task)s
   for update skip locked
