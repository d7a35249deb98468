-- Take the right to sweep until the end of the transaction, unless somebody sweeps already.
-- The numbers are the Rust port's, so that its sweepers and ours take turns; one lock serves the whole database.
select pg_try_advisory_xact_lock(1196905043, 1398228304)
