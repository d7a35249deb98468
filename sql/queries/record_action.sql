-- Record what an operator did to jobs, workers or pauses, in the transaction that does it.
-- Role and address are those of the session: a program can name any operator, but no other role or address.
insert into :GRAPHILE_WORKER_SCHEMA._private_gw_actions (
  action, by, role, program, address, job_ids, targets, details, expires_at
)
values (
  %(action)s::text,
  %(by)s::text,
  session_user::text,
  nullif(current_setting('application_name'::text), ''::text),
  host(inet_client_addr()),
  %(job_ids)s::bigint[],
  %(targets)s::text[],
  %(details)s::json,
  now() + interval '90 days'
)
returning id
