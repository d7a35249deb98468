-- Take the wishes that wait for this pool, which answers whoever wished: what is taken was heard.
delete from :GRAPHILE_WORKER_SCHEMA._private_gw_cancellations
 where pool = %(worker_id)s
returning job_id, message, retry, date_part('epoch', locked_at)
