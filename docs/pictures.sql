-- The queue of the pictures: a task that keeps failing, one that no worker knows, failed payments, and a dead worker
-- that locked eight queues.
insert into _private_tasks (identifier)
values ('send_email'), ('resize_image'), ('sync_crm'), ('legacy_import'), ('charge_card');
insert into _private_gw_workers (id, started_at, last_heartbeat_at, host, pid, version, metadata)
select 'gw-app-3-977-760e1f', now() - interval '7 hours', now() - interval '20 minutes', 'app-3', 977, '0.1.0', '{}';
insert into _private_job_queues (queue_name) select 'customer-' || n from generate_series(1, 20) as n;
insert into _private_jobs (task_id, priority, run_at, created_at, payload)
select 1 + n % 2, 5 * (n % 2), now() + n * interval '1 second', now() - interval '1 hour',
       '{"to": "ann@example.com"}'
  from generate_series(1, 5000) as n;
insert into _private_jobs (task_id, attempts, last_error, created_at, updated_at, run_at, payload)
select 3, 9, 'ConnectionRefusedError: crm.example.com:443' || chr(10) || '  at push (crm.py:88)',
       now() - interval '46 minutes', now() - n % 60 * interval '5 seconds', now() + interval '1 hour',
       '{"customer": 12}'
  from generate_series(1, 1500) as n;
insert into _private_jobs (task_id, created_at, run_at, payload)
select 4, now() - interval '15 minutes', now() - interval '15 minutes', '{}' from generate_series(1, 1397);
insert into _private_jobs (task_id, attempts, max_attempts, last_error, created_at, updated_at, run_at, payload)
select 5, 5, 5, 'PaymentError: insufficient funds, customer ' || n || chr(10) || '  at charge (cards.py:41)',
       now() - interval '2 hours', now() - n * interval '4 minutes', now() - n * interval '4 minutes',
       '{"amount": 4900, "currency": "EUR", "card": {"token": "tok_1MqLiJLkdIwHu7ix"}}'
  from generate_series(1, 24) as n;
update _private_job_queues
   set locked_by = 'gw-app-3-977-760e1f', locked_at = now() - interval '20 minutes'
 where id <= 8;
insert into _private_jobs (job_queue_id, task_id, created_at, run_at, payload)
select 1 + n % 8, 1, now() - interval '4 minutes', now() - interval '4 minutes', '{}'
  from generate_series(1, 714) as n;
insert into _private_jobs (job_queue_id, task_id, attempts, locked_by, locked_at, created_at, run_at, payload)
select n, 1, 1, 'gw-app-3-977-760e1f', now() - interval '20 minutes', now() - interval '30 minutes',
       now() - interval '30 minutes',
       '{}'
  from generate_series(1, 8) as n;
insert into _private_gw_statistics
select date_trunc('minute', now()) - n * interval '1 minute', task, 'gw-app-1-12-aa01', 40 + n % 17, failed, 0, 9,
       array[0, 0, 0, 0, 0, 0, 30, 10, n % 17, failed] || array_fill(0, array[7]), 40, 90
  from generate_series(1, 60) as n,
       (values ('send_email', 0), ('resize_image', 1), ('sync_crm', 9)) as of_task (task, failed)
 where n not in (31, 32);
analyze;
