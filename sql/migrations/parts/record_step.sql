-- The row comes first and is the lock too: another program that takes the same step waits here, then finds it done.
insert into :GRAPHILE_WORKER_SCHEMA.migrations (id, breaking) values (:NUMBER, :BREAKING);
