-- How many seconds the server has worked at what was sent along with this, up to here.
-- All of it is one transaction, which began with the first statement: the way to us and back is not in it.
select date_part('epoch', clock_timestamp() - now())
