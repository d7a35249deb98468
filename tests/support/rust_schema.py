"""What graphile_worker_rs adds to the schema, as far as gw meets it; tests/interop compares it with the real thing."""

from __future__ import annotations

from typing import Final

WORKERS: Final = """
create table _private_workers (
  id text primary key,
  last_heartbeat_at timestamptz not null,
  started_at timestamptz not null default now(),
  metadata jsonb
);
create index _private_workers_last_heartbeat_at_idx on _private_workers (last_heartbeat_at);
create function worker_heartbeat(worker_id text, metadata json default null) returns void language sql as $$
  insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata)
  values (worker_id, now(), metadata::jsonb)
  on conflict (id) do update set last_heartbeat_at = now(), metadata = excluded.metadata
$$;
create function worker_deregister(worker_id text) returns void language sql as $$
  delete from graphile_worker._private_workers where id = worker_id
$$;
"""
"""Its heartbeats, for a session whose search_path has the schema."""

RETIREMENTS: Final = """
create table _private_job_retirements (id bigint primary key references _private_jobs (id) on delete cascade);
insert into migrations (id) values (21), (22);
"""
"""Its list of jobs that must never run again, from version 0.13.6 on."""
