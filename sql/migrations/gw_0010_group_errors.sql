-- A group whose last job cannot be added keeps the error, and no longer stops the other groups.

alter table :GRAPHILE_WORKER_SCHEMA._private_gw_waiting add column if not exists error text;

\ir parts/end_group_members.sql
