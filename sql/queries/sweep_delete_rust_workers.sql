-- The same in the Rust port's table.
\set WORKERS _private_workers
\ir parts/sweep_delete.sql
