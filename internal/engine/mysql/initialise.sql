-- What a database that is made begins with. It is the same on each member, and
-- no part of what members copy from each other.
SET SESSION sql_log_bin = OFF;
-- While a data directory is made, sessions begin with the server's own.
SET SESSION collation_server = @@GLOBAL.collation_server;
CREATE DATABASE app;
-- The account that the server makes without a password. Nobody uses it.
ALTER USER root@localhost ACCOUNT LOCK;
