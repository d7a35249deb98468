-- Take the cancel requests of this worker. Deleting a request confirms that it was received.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations
 where pool = %(worker_id)s::text
returning job_id, message, retry, date_part('epoch', locked_at)
