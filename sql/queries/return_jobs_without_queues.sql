-- Return the jobs of these claims, as return_jobs.sql does, when that releases no queue.
with
\ir parts/returned.sql
\set SETTLED returned
\ir parts/settled_ids_notified.sql
