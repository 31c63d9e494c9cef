-- What a database that is made begins with. It is the same on each member, and
-- no part of what members copy from each other.
CREATE DATABASE app;
-- What this member is: a primary, which takes writes and waits for as many
-- acknowledgements as are required; a replica, which copies from the host, if there
-- is one; or fenced, which copies from nobody. Each has a row of its own, which the
-- server reads at its start.
CREATE DATABASE database_manager;
CREATE TABLE database_manager.member (
    id TINYINT PRIMARY KEY,
    role VARCHAR(16) NOT NULL,
    host VARCHAR(255) NOT NULL DEFAULT '',
    port INT UNSIGNED NOT NULL DEFAULT 3306,
    acknowledges BOOLEAN NOT NULL DEFAULT 0,
    required INT UNSIGNED NOT NULL DEFAULT 0
) ENGINE = InnoDB;
INSERT INTO database_manager.member (id, role) VALUES (1, 'replica');
-- The account that the server makes for the system's root. Nobody uses it.
FLUSH PRIVILEGES;
ALTER USER root@localhost ACCOUNT LOCK;
