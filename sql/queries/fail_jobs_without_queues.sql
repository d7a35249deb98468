-- Record the failures of these claims, as fail_jobs.sql does, when that releases no queue.
with
\set RETURNED jobs.id
\ir parts/failed.sql
\set SETTLED failed
\ir parts/settled_ids.sql
