-- Take the lock of sweeps until the transaction ends, unless another session has it.
-- The numbers are those of graphile_worker_rs, so that its sweepers and gw's exclude each other in the whole database.
select pg_try_advisory_xact_lock(1196905043, 1398228304)
