-- Return the jobs of these claims, which were not run to an end, and release their queues.
with
\ir parts/returned.sql
,
\set SETTLED returned
\ir parts/released_queues.sql
\ir parts/settled_ids_notified.sql
