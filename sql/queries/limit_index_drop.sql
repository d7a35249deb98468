-- Drop an index that no limit needs.
\set INDEX jobs_gw_field
drop index concurrently if exists :GRAPHILE_WORKER_SCHEMA.:INDEX
