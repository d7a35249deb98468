-- The step was applied before, and its work has been undone since.
update :GRAPHILE_WORKER_SCHEMA._private_gw_migrations set applied_at = now() where id = :NUMBER;
