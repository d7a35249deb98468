-- First of all the row, which is the lock too: whoever takes the same step meanwhile waits here and then gives way.
insert into :GRAPHILE_WORKER_SCHEMA.migrations (id, breaking) values (:NUMBER, :BREAKING);
