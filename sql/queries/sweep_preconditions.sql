-- What a sweep needs to know: whether the tables of heartbeats exist, and how long the server has been up.
-- No worker can send a heartbeat while the server is down.
select to_regclass(pg_catalog.format('%%I._private_gw_workers', %(schema)s::text)) is not null,
       to_regclass(pg_catalog.format('%%I._private_workers', %(schema)s::text)) is not null,
       date_part('epoch', now() - pg_postmaster_start_time())
