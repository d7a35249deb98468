-- Sessions that come later wait behind this one for a table: the wait for a lock is short, and the step is retried.
-- The wait for another program that takes the same step is over by now.
set local lock_timeout = '2s';
