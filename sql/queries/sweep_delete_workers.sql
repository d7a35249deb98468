-- Forget the silent workers that hold nothing any more; answers their ids.
\set WORKERS _private_gw_workers
\ir parts/sweep_delete.sql
