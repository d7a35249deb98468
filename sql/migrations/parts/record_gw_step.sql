-- The row comes first and is the lock too, as in the shared ledger.
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_migrations (id, name) values (:NUMBER, ':NAME');
