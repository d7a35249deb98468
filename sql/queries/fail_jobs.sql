-- Record the failures of these claims and release the queues they were the last of.
with
\set RETURNED jobs.id
\ir parts/failed.sql
,
\set SETTLED failed
\ir parts/released_queues.sql
\ir parts/settled_ids.sql
