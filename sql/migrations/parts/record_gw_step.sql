-- The row comes first and is the lock too, as in the shared ledger. `:AGAIN`: the step was applied before, and its work
-- has been undone since.
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_migrations (id, name) values (:NUMBER, ':NAME')
\if :AGAIN
on conflict (id) do update set name = excluded.name, applied_at = now()
\endif
;
