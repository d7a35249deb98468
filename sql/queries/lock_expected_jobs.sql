-- Lock jobs that were read before until the transaction ends, and return them as they are now.
-- Rows are locked in order of their ids. Rows that another session locks are skipped and reported, not waited for. The
-- payload is returned only if the rows are going to be deleted.
\ir parts/locked_job.sql
where jobs.id = any(%(ids)s::bigint[])
order by jobs.id
  for update of jobs skip locked
