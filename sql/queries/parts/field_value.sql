-- The value that a limit counts by: exactly the expression of the index.
:GRAPHILE_WORKER_SCHEMA._private_gw_field_value(payload, ':FIELD'::text) collate pg_catalog."C"
