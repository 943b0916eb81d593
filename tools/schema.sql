-- The directory in SQLite, schema version 1. `fingerpost init` runs this once, in one transaction.
--
-- Who may write: anybody, with plain SQL. The triggers below number every change, keep its history and refuse what
-- no syncer could serve, so that nobody need know this file to write shard_directory and shard_topology correctly:
--   * every changed row takes the next version from directory_version; SQLite admits one writer at a time, so
--     versions are in commit order, and "epoch > v" never skips a row that commits late;
--   * an epoch is the version of the change that last touched its row, and never goes back: not by REPLACE, not by
--     delete and re-create, not by hand;
--   * every version has exactly one row in directory_history, whose nonce tells two histories apart.
-- A change that leaves shard_id, state and target_shard as they were takes no version.
--
-- A verb of ours names itself in directory_session, inside its own transaction: nobody else ever sees that row.
-- Triggers rather than CHECK constraints hold the rules that a later release may widen: a trigger can be replaced
-- in place, its message says what to do, and INSERT OR IGNORE does not turn it into a silent skip.

PRAGMA application_id = 0x46475054;

CREATE TABLE directory_version (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL CHECK (version >= 0)
) STRICT;

CREATE TABLE directory_layout (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  directory_id TEXT NOT NULL,  -- a UUID, lower case
  buckets INTEGER NOT NULL DEFAULT 0,
  fallback TEXT NOT NULL CHECK (fallback IN ('none', 'buckets', 'hash')),
  hash_shards TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(hash_shards)),
  schema_version INTEGER NOT NULL,
  replay_floor INTEGER NOT NULL DEFAULT 0,    -- removals up to here may be forgotten: a cursor below it reloads
  topology_epoch INTEGER NOT NULL DEFAULT 0,  -- version of the last change to shard_topology, deletions included
  epoch INTEGER NOT NULL DEFAULT 0,           -- the epoch of every route by hash
  CHECK (CASE fallback WHEN 'buckets' THEN buckets BETWEEN 1 AND 1048576 ELSE buckets = 0 END),
  CHECK ((fallback = 'hash') = (json_array_length(hash_shards) > 0))
) STRICT;

CREATE TABLE shard_topology (
  shard_id TEXT NOT NULL PRIMARY KEY,
  primary_address TEXT NOT NULL DEFAULT '',
  replicas TEXT NOT NULL DEFAULT '[]',  -- a JSON array of addresses, in order
  region TEXT NOT NULL DEFAULT '',
  weight INTEGER NOT NULL DEFAULT 100 CHECK (weight BETWEEN 0 AND 4294967295),  -- 0 takes no new tenants
  attributes TEXT NOT NULL DEFAULT '{}',  -- a JSON object of strings
  epoch INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE shard_directory (
  entry_id TEXT NOT NULL PRIMARY KEY,  -- a tenant, 'bucket:N' or 'part:K:TENANT'
  shard_id TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'ACTIVE',
  target_shard TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT, WITHOUT ROWID;
-- Covers what a sync reads, so that a million changed rows are one walk along it.
CREATE INDEX shard_directory_by_epoch ON shard_directory (epoch, shard_id, state, target_shard);

-- Never pruned: where INSERT OR REPLACE leaves no row from before, the last row here is what was there before.
CREATE TABLE directory_history (
  version INTEGER PRIMARY KEY,
  nonce INTEGER NOT NULL,  -- 63 random bits
  at TEXT NOT NULL,
  kind TEXT NOT NULL,      -- 'entry', 'shard', 'pin', 'layout', or 'lift' for a counter raised by itself
  entry_id TEXT,           -- of kind 'entry' only
  subject TEXT,            -- what any other kind is about: of 'shard' the shard, of 'pin' the tenant
  shard_before TEXT,
  state_before TEXT,
  target_before TEXT,
  epoch_before INTEGER,
  shard_after TEXT,        -- NULL where the row left the table
  state_after TEXT,
  target_after TEXT,
  who TEXT,
  verb TEXT,               -- NULL where plain SQL made the change
  note TEXT                -- what the verb was told, such as a reason; of a split's change, the parts
) STRICT;
CREATE INDEX directory_history_by_entry ON directory_history (entry_id) WHERE entry_id IS NOT NULL;

-- Rows that left shard_directory, for syncers that still hold them. A verb announces the row here, then deletes it;
-- the delete stamps `version`, and re-stamps the entry that the id resolves by from then on. Parts that merge are
-- announced by a trigger, which re-stamps what stays.
CREATE TABLE directory_removed (
  entry_id TEXT NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL DEFAULT 0,  -- 0: announced
  uncovers TEXT                        -- the bucket that answers from then on; NULL where there is none
) STRICT, WITHOUT ROWID;
CREATE INDEX directory_removed_by_version ON directory_removed (version);

CREATE TABLE directory_session (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  who TEXT NOT NULL,
  verb TEXT NOT NULL,
  note TEXT
) STRICT;

-- An open move. Closing it deletes the row; its steps stay in directory_history.
CREATE TABLE directory_move (
  entry_id TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  target TEXT NOT NULL,
  step TEXT NOT NULL CHECK (step IN ('marked', 'frozen')),
  token TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  started_at TEXT NOT NULL,
  frozen_at TEXT,
  deadline TEXT NOT NULL,
  epoch INTEGER NOT NULL  -- the entry's epoch after the last step: the next one compares and sets
) STRICT, WITHOUT ROWID;

-- What the steps of moves committed, by token: a mover whose COMMIT went unanswered asks here whether it was done.
CREATE TABLE directory_move_step (
  token TEXT NOT NULL,
  step TEXT NOT NULL CHECK (step IN ('mark', 'freeze', 'flip', 'abort')),
  entry_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (token, step)
) STRICT, WITHOUT ROWID;

-- Split tenants. An object of theirs is answered for by the entry 'part:K:TENANT', K = xxh3_64(object) mod parts.
-- Writing here is all there is to splitting: INSERT makes the parts, on the tenant's shard; UPDATE to a multiple makes
-- the further ones, part K on the shard of part K mod the parts before, so that no object changes its shard; UPDATE to
-- a divisor, or DELETE, merges those that are on one shard. All parts are there at every commit. Each of these
-- re-stamps the tenant's own entry, which stays, ACTIVE or DELETED, on the shard of part 0.
CREATE TABLE directory_split (
  entry_id TEXT NOT NULL PRIMARY KEY,
  parts INTEGER NOT NULL CHECK (parts BETWEEN 2 AND 1024),
  epoch INTEGER NOT NULL DEFAULT 0  -- the tenant's own, of the last change here
) STRICT, WITHOUT ROWID;

-- Tenants that nothing moves by itself, each with an entry of its own, which no bucket's move touches. Only where
-- nothing but entries answers may a pin come before its tenant.
CREATE TABLE directory_pin (
  entry_id TEXT NOT NULL PRIMARY KEY,
  region TEXT,  -- where it, and every part of it, must stay; NULL: anywhere
  reason TEXT,
  who TEXT NOT NULL,
  at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE shard_load (
  shard_id TEXT NOT NULL PRIMARY KEY,
  tenants INTEGER NOT NULL DEFAULT 0,  -- entries of tenants here that are not DELETED; kept by triggers
  reported REAL CHECK (reported BETWEEN 0 AND 1e15),  -- in tenants' worth; NULL until somebody reports
  reported_at TEXT
) STRICT, WITHOUT ROWID;

-- Versions that the poison guard lets through.
CREATE TABLE directory_approval (
  version INTEGER PRIMARY KEY,
  who TEXT NOT NULL,
  at TEXT NOT NULL
) STRICT;

INSERT INTO directory_version (id, version) VALUES (1, 0);

-- The counter only grows. Whoever raises it by hand makes a version in which nothing changed.

CREATE TRIGGER directory_version_unique BEFORE INSERT ON directory_version BEGIN
  SELECT RAISE(ABORT, 'directory_version has its one row already');
END;

CREATE TRIGGER directory_version_kept BEFORE DELETE ON directory_version BEGIN
  SELECT RAISE(ABORT, 'directory_version keeps its one row');
END;

CREATE TRIGGER directory_version_grows BEFORE UPDATE ON directory_version
WHEN NEW.version <= OLD.version OR NEW.version > 4611686018427387904 OR NEW.id <> OLD.id BEGIN
  SELECT RAISE(ABORT, 'directory_version only grows, up to 2^62; triggers raise it for every change');
END;

CREATE TRIGGER directory_version_raised AFTER UPDATE ON directory_version
WHEN NOT EXISTS (SELECT 1 FROM directory_history WHERE version = NEW.version) BEGIN
  INSERT INTO directory_history (version, nonce, at, kind, who, verb, note)
  SELECT NEW.version, random() & 9223372036854775807, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'lift', s.who, s.verb,
         s.note
  FROM (SELECT 1) LEFT JOIN directory_session AS s ON s.id = 1;
END;

CREATE TRIGGER directory_history_fixed BEFORE UPDATE ON directory_history BEGIN
  SELECT RAISE(ABORT, 'directory_history is never rewritten');
END;

CREATE TRIGGER directory_history_kept BEFORE DELETE ON directory_history BEGIN
  SELECT RAISE(ABORT, 'directory_history is never pruned');
END;

-- The layout is written once: another B or another hash list would change the owner of tenants without a move.

CREATE TRIGGER directory_layout_unique BEFORE INSERT ON directory_layout
WHEN EXISTS (SELECT 1 FROM directory_layout) BEGIN
  SELECT RAISE(ABORT, 'directory_layout has its one row already');
END;

CREATE TRIGGER directory_layout_created AFTER INSERT ON directory_layout BEGIN
  INSERT INTO directory_history (version, nonce, at, kind, who, verb, note)
  SELECT v.version + 1, random() & 9223372036854775807, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'layout', s.who,
         s.verb, s.note
  FROM directory_version AS v LEFT JOIN directory_session AS s ON s.id = 1;
  UPDATE directory_version SET version = version + 1;
  UPDATE directory_layout SET epoch = (SELECT version FROM directory_version);
END;

CREATE TRIGGER directory_layout_kept BEFORE DELETE ON directory_layout BEGIN
  SELECT RAISE(ABORT, 'directory_layout keeps its one row');
END;

CREATE TRIGGER directory_layout_fixed BEFORE UPDATE OF id, directory_id, buckets, fallback, hash_shards
ON directory_layout
WHEN NEW.id IS NOT OLD.id OR NEW.directory_id IS NOT OLD.directory_id OR NEW.buckets IS NOT OLD.buckets
  OR NEW.fallback IS NOT OLD.fallback OR NEW.hash_shards IS NOT OLD.hash_shards BEGIN
  SELECT RAISE(ABORT, 'buckets, fallback and hash list never change after init');
END;

CREATE TRIGGER directory_layout_floor_grows BEFORE UPDATE OF replay_floor ON directory_layout
WHEN NEW.replay_floor < OLD.replay_floor OR NEW.replay_floor > (SELECT version FROM directory_version) BEGIN
  SELECT RAISE(ABORT, 'replay_floor only grows, up to the version');
END;

CREATE TRIGGER directory_layout_epoch_guard BEFORE UPDATE OF epoch, topology_epoch ON directory_layout
WHEN (NEW.epoch IS NOT OLD.epoch AND NEW.epoch IS NOT (SELECT version FROM directory_version))
  OR (NEW.topology_epoch IS NOT OLD.topology_epoch
      AND NEW.topology_epoch IS NOT (SELECT version FROM directory_version)) BEGIN
  SELECT RAISE(ABORT, 'epochs are set by triggers');
END;

-- Topology. One place checks a shard's row and stamps it: an insert into this view.

CREATE VIEW shard_topology_stamp (shard_id) AS SELECT shard_id FROM shard_topology;

CREATE TRIGGER shard_topology_stamped INSTEAD OF INSERT ON shard_topology_stamp BEGIN
  SELECT RAISE(ABORT, 'replicas must be a JSON array of at most 64 strings')
  FROM shard_topology AS t
  WHERE t.shard_id = NEW.shard_id
    AND CASE WHEN NOT json_valid(t.replicas) THEN 1
             WHEN json_type(t.replicas) <> 'array' THEN 1
             ELSE json_array_length(t.replicas) > 64
               OR EXISTS (SELECT 1 FROM json_each(t.replicas) WHERE type <> 'text') END;
  SELECT RAISE(ABORT, 'attributes must be a JSON object of at most 64 strings')
  FROM shard_topology AS t
  WHERE t.shard_id = NEW.shard_id
    AND CASE WHEN NOT json_valid(t.attributes) THEN 1
             WHEN json_type(t.attributes) <> 'object' THEN 1
             ELSE (SELECT count(*) FROM json_each(t.attributes)) > 64
               OR EXISTS (SELECT 1 FROM json_each(t.attributes) WHERE type <> 'text') END;
  SELECT RAISE(ABORT, 'an address, region or attribute is at most 1024 bytes without control characters')
  FROM (
    SELECT primary_address AS field FROM shard_topology WHERE shard_id = NEW.shard_id
    UNION ALL SELECT region FROM shard_topology WHERE shard_id = NEW.shard_id
    UNION ALL SELECT value FROM shard_topology AS t, json_each(t.replicas) WHERE t.shard_id = NEW.shard_id
    UNION ALL SELECT key FROM shard_topology AS t, json_each(t.attributes) WHERE t.shard_id = NEW.shard_id
    UNION ALL SELECT value FROM shard_topology AS t, json_each(t.attributes) WHERE t.shard_id = NEW.shard_id
  )
  WHERE length(CAST(field AS BLOB)) NOT BETWEEN 0 AND 1024 OR instr(CAST(field AS BLOB), x'00') > 0
    OR field GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*';
  -- Every worker can read the whole directory.
  SELECT RAISE(ABORT, 'an address must not carry user:password@')
  FROM (
    SELECT primary_address AS address FROM shard_topology WHERE shard_id = NEW.shard_id
    UNION ALL SELECT value FROM shard_topology AS t, json_each(t.replicas) WHERE t.shard_id = NEW.shard_id
  )
  WHERE substr(address, CASE instr(address, '://') WHEN 0 THEN 1 ELSE instr(address, '://') + 3 END) GLOB '*:*@*';
  INSERT INTO directory_history (version, nonce, at, kind, subject, who, verb, note)
  SELECT v.version + 1, random() & 9223372036854775807, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'shard', NEW.shard_id,
         s.who, s.verb, s.note
  FROM directory_version AS v LEFT JOIN directory_session AS s ON s.id = 1;
  UPDATE directory_version SET version = version + 1;
  UPDATE directory_layout SET topology_epoch = (SELECT version FROM directory_version);
  UPDATE shard_topology SET epoch = (SELECT version FROM directory_version) WHERE shard_id = NEW.shard_id;
END;

CREATE TRIGGER shard_topology_named BEFORE INSERT ON shard_topology BEGIN
  SELECT RAISE(ABORT, 'shard_id must be 1 to 32 bytes without control characters')
  WHERE length(CAST(NEW.shard_id AS BLOB)) NOT BETWEEN 1 AND 32 OR instr(CAST(NEW.shard_id AS BLOB), x'00') > 0
    OR NEW.shard_id GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*';
END;

CREATE TRIGGER shard_topology_renamed BEFORE UPDATE OF shard_id ON shard_topology
WHEN NEW.shard_id IS NOT OLD.shard_id BEGIN
  SELECT RAISE(ABORT, 'a shard cannot be renamed: add another and move its tenants there');
END;

CREATE TRIGGER shard_topology_region_kept BEFORE UPDATE OF region ON shard_topology
WHEN NEW.region IS NOT OLD.region BEGIN
  SELECT RAISE(ABORT, 'a tenant on this shard is pinned to its region')
  FROM directory_pin AS p
  WHERE p.region IS NOT NULL AND p.region <> NEW.region
    AND (EXISTS (SELECT 1 FROM shard_directory AS d
                 WHERE d.entry_id = p.entry_id AND d.state <> 'DELETED'
                   AND OLD.shard_id IN (d.shard_id, d.target_shard))
         OR EXISTS (SELECT 1 FROM directory_part AS part JOIN shard_directory AS d ON d.entry_id = part.entry_id
                    WHERE part.tenant = p.entry_id AND OLD.shard_id IN (d.shard_id, d.target_shard)));
END;

CREATE TRIGGER shard_topology_inserted AFTER INSERT ON shard_topology BEGIN
  INSERT INTO shard_load (shard_id) SELECT NEW.shard_id
  WHERE NOT EXISTS (SELECT 1 FROM shard_load WHERE shard_id = NEW.shard_id);
  INSERT INTO shard_topology_stamp (shard_id) VALUES (NEW.shard_id);
END;

CREATE TRIGGER shard_topology_updated
AFTER UPDATE OF primary_address, replicas, region, weight, attributes ON shard_topology
WHEN NEW.primary_address IS NOT OLD.primary_address OR NEW.replicas IS NOT OLD.replicas
  OR NEW.region IS NOT OLD.region OR NEW.weight IS NOT OLD.weight OR NEW.attributes IS NOT OLD.attributes BEGIN
  INSERT INTO shard_topology_stamp (shard_id) VALUES (NEW.shard_id);
END;

CREATE TRIGGER shard_topology_epoch_guard BEFORE UPDATE OF epoch ON shard_topology
WHEN NEW.epoch IS NOT OLD.epoch AND NOT EXISTS (
  SELECT 1 FROM directory_history
  WHERE version = NEW.epoch AND kind = 'shard' AND subject = NEW.shard_id
    AND version = (SELECT version FROM directory_version)) BEGIN
  SELECT RAISE(ABORT, 'epoch is set by triggers: leave it out');
END;

CREATE TRIGGER shard_topology_in_use BEFORE DELETE ON shard_topology BEGIN
  SELECT RAISE(ABORT, 'the shard is still named by an entry')
  WHERE EXISTS (
    SELECT 1 FROM shard_directory WHERE shard_id = OLD.shard_id OR target_shard = OLD.shard_id);
  SELECT RAISE(ABORT, 'the shard is named by the hash list')
  WHERE EXISTS (
    SELECT 1 FROM directory_layout AS l, json_each(l.hash_shards) AS h WHERE h.value = OLD.shard_id);
END;

CREATE TRIGGER shard_topology_deleted AFTER DELETE ON shard_topology BEGIN
  DELETE FROM shard_load WHERE shard_id = OLD.shard_id;
  INSERT INTO shard_topology_stamp (shard_id) VALUES (OLD.shard_id);
END;

-- Entries: what may be a row.

CREATE TRIGGER shard_directory_id_checked BEFORE INSERT ON shard_directory BEGIN
  SELECT RAISE(ABORT, 'entry_id must be 1 to 255 bytes without control characters')
  WHERE length(CAST(CASE WHEN NEW.entry_id GLOB 'part:?*:?*'
                         THEN substr(NEW.entry_id, 6 + instr(substr(NEW.entry_id, 6), ':'))
                         ELSE NEW.entry_id END AS BLOB)) NOT BETWEEN 1 AND 255
    OR instr(CAST(NEW.entry_id AS BLOB), x'00') > 0
    OR NEW.entry_id GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*';
  SELECT RAISE(ABORT, 'a bucket is ''bucket:N'' with N in plain decimal, below the number of buckets')
  WHERE NEW.entry_id GLOB 'bucket:*'
    AND (substr(NEW.entry_id, 8) <> CAST(CAST(substr(NEW.entry_id, 8) AS INTEGER) AS TEXT)
         OR CAST(substr(NEW.entry_id, 8) AS INTEGER)
            NOT BETWEEN 0 AND (SELECT buckets FROM directory_layout) - 1);
  SELECT RAISE(ABORT, 'a part is ''part:K:TENANT'' with K below 1024')
  FROM (SELECT substr(NEW.entry_id, 6) AS rest)
  WHERE NEW.entry_id GLOB 'part:*'
    AND (instr(rest, ':') < 2
         OR substr(rest, 1, instr(rest, ':') - 1)
            <> CAST(CAST(substr(rest, 1, instr(rest, ':') - 1) AS INTEGER) AS TEXT)
         OR CAST(rest AS INTEGER) NOT BETWEEN 0 AND 1023
         OR substr(rest, instr(rest, ':') + 1) = ''
         OR substr(rest, instr(rest, ':') + 1) GLOB 'bucket:*'
         OR substr(rest, instr(rest, ':') + 1) GLOB 'part:*');
  SELECT RAISE(ABORT, 'its tenant is not split into so many parts')
  WHERE NEW.entry_id GLOB 'part:*' AND NOT EXISTS (
    SELECT 1 FROM directory_split
    WHERE entry_id = substr(NEW.entry_id, 6 + instr(substr(NEW.entry_id, 6), ':'))
      AND parts > CAST(substr(NEW.entry_id, 6) AS INTEGER));
END;

CREATE TRIGGER shard_directory_renamed BEFORE UPDATE OF entry_id ON shard_directory
WHEN NEW.entry_id IS NOT OLD.entry_id BEGIN
  SELECT RAISE(ABORT, 'an entry cannot be renamed: its id is its identity');
END;

-- A mistyped state would stop a tenant's writes, so only known ones are let in. Readers still take any state as "not
-- writable": a release that adds one replaces this view, and older syncers go on.
CREATE VIEW directory_state (state) AS VALUES ('ACTIVE'), ('MIGRATING'), ('FROZEN'), ('DELETED');

-- Of an entry that is a part, or whose tenant is split, or pinned.
CREATE VIEW directory_entry_check (entry_id, shard_id, state, target_shard) AS
SELECT entry_id, shard_id, state, target_shard FROM shard_directory;

CREATE TRIGGER directory_entry_checked INSTEAD OF INSERT ON directory_entry_check BEGIN
  SELECT RAISE(ABORT, 'a bucket or a part cannot be DELETED')
  WHERE NEW.state = 'DELETED' AND (NEW.entry_id GLOB 'bucket:*' OR NEW.entry_id GLOB 'part:*');
  SELECT RAISE(ABORT, 'the tenant is split: its parts are moved, and its own entry is on the shard of part 0')
  WHERE EXISTS (SELECT 1 FROM directory_split WHERE entry_id = NEW.entry_id)
    AND (NEW.state NOT IN ('ACTIVE', 'DELETED') OR NEW.target_shard IS NOT NULL
         OR NEW.shard_id IS NOT (SELECT shard_id FROM shard_directory WHERE entry_id = 'part:0:' || NEW.entry_id));
  SELECT RAISE(ABORT, 'the tenant is pinned to another region')
  FROM directory_pin AS p JOIN shard_topology AS t ON t.shard_id IN (NEW.shard_id, NEW.target_shard)
  WHERE p.entry_id = CASE WHEN NEW.entry_id GLOB 'part:*'
                          THEN substr(NEW.entry_id, 6 + instr(substr(NEW.entry_id, 6), ':')) ELSE NEW.entry_id END
    AND p.region IS NOT NULL AND t.region <> p.region;
END;

CREATE TRIGGER shard_directory_insert_checked BEFORE INSERT ON shard_directory BEGIN
  SELECT RAISE(ABORT, 'shard_id names no shard of shard_topology')
  WHERE NOT EXISTS (SELECT 1 FROM shard_topology WHERE shard_id = NEW.shard_id);
  SELECT RAISE(ABORT, 'target_shard names no shard of shard_topology')
  WHERE NEW.target_shard IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM shard_topology WHERE shard_id = NEW.target_shard);
  SELECT RAISE(ABORT, 'state must be ACTIVE, MIGRATING, FROZEN or DELETED')
  WHERE NEW.state NOT IN (SELECT state FROM directory_state);
  INSERT INTO directory_entry_check (entry_id, shard_id, state, target_shard)
  VALUES (NEW.entry_id, NEW.shard_id, NEW.state, NEW.target_shard);
END;

CREATE TRIGGER shard_directory_update_checked BEFORE UPDATE OF shard_id, state, target_shard ON shard_directory BEGIN
  SELECT RAISE(ABORT, 'shard_id names no shard of shard_topology')
  WHERE NEW.shard_id IS NOT OLD.shard_id
    AND NOT EXISTS (SELECT 1 FROM shard_topology WHERE shard_id = NEW.shard_id);
  SELECT RAISE(ABORT, 'target_shard names no shard of shard_topology')
  WHERE NEW.target_shard IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM shard_topology WHERE shard_id = NEW.target_shard);
  SELECT RAISE(ABORT, 'state must be ACTIVE, MIGRATING, FROZEN or DELETED')
  WHERE NEW.state IS NOT OLD.state AND NEW.state NOT IN (SELECT state FROM directory_state);
  INSERT INTO directory_entry_check (entry_id, shard_id, state, target_shard)
  SELECT NEW.entry_id, NEW.shard_id, NEW.state, NEW.target_shard
  WHERE NEW.shard_id IS NOT OLD.shard_id OR NEW.state IS NOT OLD.state OR NEW.target_shard IS NOT OLD.target_shard;
END;

-- Stamping. The stamp sets none of the columns that fire a stamp.

CREATE TRIGGER shard_directory_inserted AFTER INSERT ON shard_directory BEGIN
  INSERT INTO directory_history (version, nonce, at, kind, entry_id, shard_before, state_before, target_before,
                                 epoch_before, shard_after, state_after, target_after, who, verb, note)
  SELECT v.version + 1, random() & 9223372036854775807, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'entry', NEW.entry_id,
         h.shard_after, h.state_after, h.target_after, CASE WHEN h.shard_after IS NOT NULL THEN h.version END,
         NEW.shard_id, NEW.state, NEW.target_shard, s.who, s.verb, s.note
  FROM directory_version AS v
  LEFT JOIN directory_history AS h
    ON h.version = (SELECT max(version) FROM directory_history WHERE entry_id = NEW.entry_id)
  LEFT JOIN directory_session AS s ON s.id = 1;
  UPDATE directory_version SET version = version + 1;
  UPDATE shard_directory
  SET epoch = (SELECT version FROM directory_version), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  WHERE entry_id = NEW.entry_id;
  DELETE FROM directory_removed WHERE entry_id = NEW.entry_id;
  UPDATE shard_load SET tenants = tenants - 1
  WHERE shard_id = (SELECT shard_before FROM directory_history
                    WHERE version = (SELECT version FROM directory_version) AND state_before <> 'DELETED')
    AND NEW.entry_id NOT GLOB 'bucket:*' AND NEW.entry_id NOT GLOB 'part:*';
  UPDATE shard_load SET tenants = tenants + 1
  WHERE shard_id = NEW.shard_id AND NEW.state <> 'DELETED'
    AND NEW.entry_id NOT GLOB 'bucket:*' AND NEW.entry_id NOT GLOB 'part:*';
END;

CREATE TRIGGER shard_directory_updated AFTER UPDATE OF shard_id, state, target_shard ON shard_directory
WHEN NEW.shard_id IS NOT OLD.shard_id OR NEW.state IS NOT OLD.state
  OR NEW.target_shard IS NOT OLD.target_shard BEGIN
  INSERT INTO directory_history (version, nonce, at, kind, entry_id, shard_before, state_before, target_before,
                                 epoch_before, shard_after, state_after, target_after, who, verb, note)
  SELECT v.version + 1, random() & 9223372036854775807, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'entry', NEW.entry_id,
         OLD.shard_id, OLD.state, OLD.target_shard, OLD.epoch,
         NEW.shard_id, NEW.state, NEW.target_shard, s.who, s.verb, s.note
  FROM directory_version AS v LEFT JOIN directory_session AS s ON s.id = 1;
  UPDATE directory_version SET version = version + 1;
  UPDATE shard_directory
  SET epoch = (SELECT version FROM directory_version), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  WHERE entry_id = NEW.entry_id;
  UPDATE shard_load SET tenants = tenants - 1
  WHERE shard_id = OLD.shard_id AND OLD.state <> 'DELETED'
    AND NEW.entry_id NOT GLOB 'bucket:*' AND NEW.entry_id NOT GLOB 'part:*';
  UPDATE shard_load SET tenants = tenants + 1
  WHERE shard_id = NEW.shard_id AND NEW.state <> 'DELETED'
    AND NEW.entry_id NOT GLOB 'bucket:*' AND NEW.entry_id NOT GLOB 'part:*';
END;

-- An insert here gives an entry a new epoch though nothing else of it changes: the entry that a removal uncovers, or
-- whose split changed.
CREATE VIEW directory_restamp (entry_id, note) AS SELECT entry_id, '' FROM shard_directory;

CREATE TRIGGER directory_restamped INSTEAD OF INSERT ON directory_restamp BEGIN
  INSERT INTO directory_history (version, nonce, at, kind, entry_id, shard_before, state_before, target_before,
                                 epoch_before, shard_after, state_after, target_after, who, verb, note)
  SELECT v.version + 1, random() & 9223372036854775807, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'entry', e.entry_id,
         e.shard_id, e.state, e.target_shard, e.epoch, e.shard_id, e.state, e.target_shard, s.who, s.verb,
         coalesce(s.note, NEW.note)
  FROM shard_directory AS e, directory_version AS v LEFT JOIN directory_session AS s ON s.id = 1
  WHERE e.entry_id = NEW.entry_id;
  UPDATE directory_version SET version = version + 1
  WHERE EXISTS (SELECT 1 FROM shard_directory WHERE entry_id = NEW.entry_id);
  UPDATE shard_directory
  SET epoch = (SELECT version FROM directory_version), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  WHERE entry_id = NEW.entry_id;
  UPDATE directory_split SET epoch = (SELECT version FROM directory_version) WHERE entry_id = NEW.entry_id;
END;

-- Whoever sets the column to what it is, as tools do that write every column back, does no harm.
CREATE TRIGGER shard_directory_epoch_guard BEFORE UPDATE OF epoch ON shard_directory
WHEN NEW.epoch IS NOT OLD.epoch AND NOT EXISTS (
  SELECT 1 FROM directory_history
  WHERE version = NEW.epoch AND entry_id = NEW.entry_id AND version = (SELECT version FROM directory_version)) BEGIN
  SELECT RAISE(ABORT, 'epoch is set by triggers: leave it out');
END;

-- Removal. A tenant that is gone stays an entry: a bare DELETE only says DELETED.

CREATE TRIGGER shard_directory_kept BEFORE DELETE ON shard_directory
WHEN NOT EXISTS (SELECT 1 FROM directory_removed WHERE entry_id = OLD.entry_id) BEGIN
  UPDATE shard_directory SET state = 'DELETED', target_shard = NULL WHERE entry_id = OLD.entry_id;
  SELECT RAISE(IGNORE);
END;

CREATE TRIGGER shard_directory_removed AFTER DELETE ON shard_directory BEGIN
  INSERT INTO directory_history (version, nonce, at, kind, entry_id, shard_before, state_before, target_before,
                                 epoch_before, who, verb, note)
  SELECT v.version + 1, random() & 9223372036854775807, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'entry', OLD.entry_id,
         OLD.shard_id, OLD.state, OLD.target_shard, OLD.epoch, s.who, s.verb, s.note
  FROM directory_version AS v LEFT JOIN directory_session AS s ON s.id = 1;
  UPDATE directory_version SET version = version + 1;
  UPDATE directory_removed SET version = (SELECT version FROM directory_version) WHERE entry_id = OLD.entry_id;
  INSERT INTO directory_restamp (entry_id) SELECT uncovers FROM directory_removed WHERE entry_id = OLD.entry_id;
  UPDATE directory_layout SET epoch = (SELECT version FROM directory_version)
  WHERE fallback = 'hash' AND OLD.entry_id NOT GLOB 'part:*';
  UPDATE shard_load SET tenants = tenants - 1
  WHERE shard_id = OLD.shard_id AND OLD.state <> 'DELETED' AND OLD.entry_id NOT GLOB 'part:*';
END;

CREATE TRIGGER directory_removed_announced BEFORE INSERT ON directory_removed BEGIN
  SELECT RAISE(ABORT, 'only tenant forget and tenant purge remove rows')
  WHERE NOT EXISTS (SELECT 1 FROM directory_session) AND NEW.entry_id NOT GLOB 'part:*';
  SELECT RAISE(ABORT, 'a part leaves by merging only: write directory_split')
  WHERE EXISTS (SELECT 1 FROM directory_part WHERE entry_id = NEW.entry_id
                AND tenant = substr(NEW.entry_id, 6 + instr(substr(NEW.entry_id, 6), ':')));
  SELECT RAISE(ABORT, 'the tenant is split: its parts must be merged first')
  WHERE EXISTS (SELECT 1 FROM directory_split WHERE entry_id = NEW.entry_id);
  SELECT RAISE(ABORT, 'the tenant is pinned: it must be unpinned first')
  WHERE EXISTS (SELECT 1 FROM directory_pin WHERE entry_id = NEW.entry_id);
  SELECT RAISE(ABORT, 'there is no such entry')
  WHERE NOT EXISTS (SELECT 1 FROM shard_directory WHERE entry_id = NEW.entry_id);
  SELECT RAISE(ABORT, 'a bucket cannot be removed') WHERE NEW.entry_id GLOB 'bucket:*';
  SELECT RAISE(ABORT, 'the removal must name the bucket that it uncovers')
  FROM directory_layout
  WHERE fallback = 'buckets' AND NEW.entry_id NOT GLOB 'part:*' AND coalesce(NEW.uncovers, '') NOT GLOB 'bucket:*';
END;

-- A forgotten removal is one that a syncer further behind can no longer learn of.
CREATE TRIGGER directory_removed_forgotten AFTER DELETE ON directory_removed
WHEN NOT EXISTS (SELECT 1 FROM shard_directory WHERE entry_id = OLD.entry_id) BEGIN
  UPDATE directory_layout SET replay_floor = OLD.version WHERE replay_floor < OLD.version;
END;

-- Split tenants.

CREATE VIEW directory_number (number) AS
SELECT key FROM json_each('[0' || replace(hex(zeroblob(1023)), '00', ',0') || ']');

CREATE VIEW directory_part (tenant, part, entry_id) AS
SELECT s.entry_id, n.number, 'part:' || n.number || ':' || s.entry_id
FROM directory_split AS s JOIN directory_number AS n ON n.number < s.parts;

CREATE TRIGGER directory_split_insert_checked BEFORE INSERT ON directory_split BEGIN
  SELECT RAISE(ABORT, 'the tenant is split already: UPDATE its parts')
  WHERE EXISTS (SELECT 1 FROM directory_split WHERE entry_id = NEW.entry_id);
  SELECT RAISE(ABORT, 'only a tenant with an ACTIVE entry of its own is split')
  WHERE NEW.entry_id GLOB 'bucket:*' OR NEW.entry_id GLOB 'part:*'
    OR NOT EXISTS (SELECT 1 FROM shard_directory WHERE entry_id = NEW.entry_id AND state = 'ACTIVE');
  SELECT RAISE(ABORT, 'the tenant is being moved: finish or abort that first')
  WHERE EXISTS (SELECT 1 FROM directory_move WHERE entry_id = NEW.entry_id);
END;

CREATE TRIGGER directory_split_inserted AFTER INSERT ON directory_split BEGIN
  INSERT INTO shard_directory (entry_id, shard_id)
  SELECT p.entry_id, d.shard_id FROM directory_part AS p JOIN shard_directory AS d ON d.entry_id = p.tenant
  WHERE p.tenant = NEW.entry_id
  ORDER BY p.part;
  INSERT INTO directory_restamp (entry_id, note) VALUES (NEW.entry_id, NEW.parts || ' parts');
END;

CREATE TRIGGER directory_split_renamed BEFORE UPDATE OF entry_id ON directory_split
WHEN NEW.entry_id IS NOT OLD.entry_id BEGIN
  SELECT RAISE(ABORT, 'an entry cannot be renamed: its id is its identity');
END;

CREATE TRIGGER directory_split_epoch_guard BEFORE UPDATE OF epoch ON directory_split
WHEN NEW.epoch IS NOT OLD.epoch AND NOT EXISTS (
  SELECT 1 FROM directory_history
  WHERE version = NEW.epoch AND entry_id = NEW.entry_id AND version = (SELECT version FROM directory_version)) BEGIN
  SELECT RAISE(ABORT, 'epoch is set by triggers: leave it out');
END;

-- Whether the parts of a tenant may become so many; 1: none, the tenant's own entry answers again.
CREATE VIEW directory_split_check (entry_id, parts) AS SELECT entry_id, parts FROM directory_split;

CREATE TRIGGER directory_split_checked INSTEAD OF INSERT ON directory_split_check BEGIN
  SELECT RAISE(ABORT, 'parts grow to a multiple of what there are, and merge to a divisor')
  FROM directory_split AS s
  WHERE s.entry_id = NEW.entry_id AND NEW.parts % s.parts <> 0 AND s.parts % NEW.parts <> 0;
  SELECT RAISE(ABORT, 'a part is being moved: finish or abort that first')
  FROM directory_part AS p JOIN shard_directory AS d ON d.entry_id = p.entry_id
  WHERE p.tenant = NEW.entry_id
    AND (d.state <> 'ACTIVE' OR EXISTS (SELECT 1 FROM directory_move AS m WHERE m.entry_id = p.entry_id));
  -- Of a tenant that is DELETED nothing is left that a shard could have to agree with.
  SELECT RAISE(ABORT, 'parts on different shards do not merge: move them first')
  FROM directory_part AS p JOIN shard_directory AS d ON d.entry_id = p.entry_id
    JOIN shard_directory AS stays ON stays.entry_id = 'part:' || (p.part % NEW.parts) || ':' || p.tenant
    JOIN shard_directory AS own ON own.entry_id = p.tenant
  WHERE p.tenant = NEW.entry_id AND p.part >= NEW.parts AND d.shard_id <> stays.shard_id AND own.state <> 'DELETED';
END;

CREATE TRIGGER directory_split_update_checked BEFORE UPDATE OF parts ON directory_split
WHEN NEW.parts IS NOT OLD.parts BEGIN
  INSERT INTO directory_split_check (entry_id, parts) VALUES (OLD.entry_id, NEW.parts);
END;

CREATE TRIGGER directory_split_grown AFTER UPDATE OF parts ON directory_split WHEN NEW.parts > OLD.parts BEGIN
  INSERT INTO shard_directory (entry_id, shard_id)
  SELECT p.entry_id, d.shard_id
  FROM directory_part AS p
    JOIN shard_directory AS d ON d.entry_id = 'part:' || (p.part % OLD.parts) || ':' || p.tenant
  WHERE p.tenant = NEW.entry_id AND p.part >= OLD.parts
  ORDER BY p.part;
  INSERT INTO directory_restamp (entry_id, note) VALUES (NEW.entry_id, NEW.parts || ' parts');
END;

-- An insert here removes the parts from the first that goes to the last there was.
CREATE VIEW directory_part_removal (tenant, first, last) AS SELECT entry_id, parts, parts FROM directory_split;

CREATE TRIGGER directory_part_removed INSTEAD OF INSERT ON directory_part_removal BEGIN
  INSERT INTO directory_removed (entry_id)
  SELECT 'part:' || number || ':' || NEW.tenant FROM directory_number WHERE number BETWEEN NEW.first AND NEW.last;
  DELETE FROM shard_directory
  WHERE entry_id IN (SELECT 'part:' || number || ':' || NEW.tenant FROM directory_number
                     WHERE number BETWEEN NEW.first AND NEW.last);
END;

CREATE TRIGGER directory_split_shrunk AFTER UPDATE OF parts ON directory_split WHEN NEW.parts < OLD.parts BEGIN
  INSERT INTO directory_part_removal (tenant, first, last) VALUES (NEW.entry_id, NEW.parts, OLD.parts - 1);
  INSERT INTO directory_restamp (entry_id)
  SELECT entry_id FROM directory_part WHERE tenant = NEW.entry_id ORDER BY part;
  INSERT INTO directory_restamp (entry_id, note) VALUES (NEW.entry_id, NEW.parts || ' parts');
END;

CREATE TRIGGER directory_split_delete_checked BEFORE DELETE ON directory_split BEGIN
  INSERT INTO directory_split_check (entry_id, parts) VALUES (OLD.entry_id, 1);
END;

CREATE TRIGGER directory_split_deleted AFTER DELETE ON directory_split BEGIN
  INSERT INTO directory_part_removal (tenant, first, last) VALUES (OLD.entry_id, 0, OLD.parts - 1);
  INSERT INTO directory_restamp (entry_id, note) VALUES (OLD.entry_id, 'not split');
END;

CREATE TRIGGER shard_directory_split_followed AFTER UPDATE OF shard_id ON shard_directory
WHEN NEW.entry_id GLOB 'part:0:*' AND NEW.shard_id IS NOT OLD.shard_id BEGIN
  UPDATE shard_directory SET shard_id = NEW.shard_id WHERE entry_id = substr(NEW.entry_id, 8);
END;

-- As INSERT OR REPLACE may: no trigger sees an update.
CREATE TRIGGER shard_directory_split_replaced AFTER INSERT ON shard_directory WHEN NEW.entry_id GLOB 'part:0:*' BEGIN
  UPDATE shard_directory SET shard_id = NEW.shard_id
  WHERE entry_id = substr(NEW.entry_id, 8) AND shard_id <> NEW.shard_id;
END;

-- Pins. Nothing that syncers serve; each change takes a version, so that history has it.

CREATE VIEW directory_pin_check (entry_id, region) AS SELECT entry_id, region FROM directory_pin;

CREATE TRIGGER directory_pin_checked INSTEAD OF INSERT ON directory_pin_check BEGIN
  SELECT RAISE(ABORT, 'a pin is a tenant''s, not a bucket''s or a part''s')
  WHERE NEW.entry_id GLOB 'bucket:*' OR NEW.entry_id GLOB 'part:*';
  SELECT RAISE(ABORT, 'a pinned tenant needs an entry of its own, since buckets or the hash rule answer without one')
  FROM directory_layout
  WHERE fallback <> 'none' AND NOT EXISTS (SELECT 1 FROM shard_directory WHERE entry_id = NEW.entry_id);
  SELECT RAISE(ABORT, 'the tenant, or a part of it, is in another region')
  FROM (
    SELECT entry_id FROM shard_directory WHERE entry_id = NEW.entry_id AND state <> 'DELETED'
    UNION ALL SELECT entry_id FROM directory_part WHERE tenant = NEW.entry_id
  ) AS e
    JOIN shard_directory AS d ON d.entry_id = e.entry_id
    JOIN shard_topology AS t ON t.shard_id IN (d.shard_id, d.target_shard)
  WHERE t.region <> NEW.region;
END;

CREATE VIEW directory_pin_stamp (entry_id, note) AS SELECT entry_id, reason FROM directory_pin;

CREATE TRIGGER directory_pin_stamped INSTEAD OF INSERT ON directory_pin_stamp BEGIN
  INSERT INTO directory_history (version, nonce, at, kind, subject, who, verb, note)
  SELECT v.version + 1, random() & 9223372036854775807, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'pin', NEW.entry_id,
         s.who, s.verb, coalesce(s.note, NEW.note)
  FROM directory_version AS v LEFT JOIN directory_session AS s ON s.id = 1;
  UPDATE directory_version SET version = version + 1;
END;

CREATE TRIGGER directory_pin_insert_checked BEFORE INSERT ON directory_pin BEGIN
  INSERT INTO directory_pin_check (entry_id, region) VALUES (NEW.entry_id, NEW.region);
END;

CREATE TRIGGER directory_pin_inserted AFTER INSERT ON directory_pin BEGIN
  INSERT INTO directory_pin_stamp (entry_id, note) VALUES (NEW.entry_id, NEW.reason);
END;

CREATE TRIGGER directory_pin_update_checked BEFORE UPDATE ON directory_pin BEGIN
  SELECT RAISE(ABORT, 'an entry cannot be renamed: its id is its identity') WHERE NEW.entry_id IS NOT OLD.entry_id;
  INSERT INTO directory_pin_check (entry_id, region) VALUES (NEW.entry_id, NEW.region);
END;

CREATE TRIGGER directory_pin_updated AFTER UPDATE ON directory_pin
WHEN NEW.region IS NOT OLD.region OR NEW.reason IS NOT OLD.reason BEGIN
  INSERT INTO directory_pin_stamp (entry_id, note) VALUES (NEW.entry_id, NEW.reason);
END;

CREATE TRIGGER directory_pin_deleted AFTER DELETE ON directory_pin BEGIN
  INSERT INTO directory_pin_stamp (entry_id, note) VALUES (OLD.entry_id, 'not pinned');
END;
