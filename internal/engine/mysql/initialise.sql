-- What a database that is made begins with. It is the same on each member, and
-- no part of what members copy from each other.
SET SESSION sql_log_bin = OFF;
CREATE DATABASE app;
-- The account that the server makes without a password. Nobody uses it.
ALTER USER root@localhost ACCOUNT LOCK;
