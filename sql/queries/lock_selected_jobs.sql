-- Lock the next jobs of a selection until the transaction ends, and return them.
-- Rows are locked in order of their ids, as the settling statements do, to avoid deadlocks. Conditions are checked
-- again after a wait: a job that no longer matches is not locked.
\ir parts/locked_job.sql
where jobs.id > %(after)s::bigint
  and jobs.id <= %(through)s::bigint
  and :SELECTION
order by jobs.id
limit %(limit)s::bigint
  for update of jobs
