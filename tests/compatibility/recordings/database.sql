BEGIN TRANSACTION;
CREATE TABLE blobs (digest TEXT PRIMARY KEY NOT NULL, size BIGINT NOT NULL,
            data BLOB NOT NULL);
CREATE TABLE blocks (id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            position TEXT NOT NULL, type TEXT NOT NULL,
    zone TEXT NOT NULL CHECK (zone IN ('PERMANENT', 'STABLE', 'WORKING')),
    content TEXT NOT NULL, tokens BIGINT NOT NULL, bytes BIGINT NOT NULL,
    skill_name TEXT, skill_description TEXT, source_type TEXT, source_ref TEXT, version BIGINT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted BIGINT);
INSERT INTO "blocks" VALUES('01a1e523b4ed81797235e57ac11c5171','01a1e523aa8fed3cdc05db7a0554c7c0','V0000000','system_prompt','PERMANENT','Review.',2,7,NULL,NULL,NULL,NULL,2,'2026-11-16T16:14:44.968Z','2026-11-16T16:14:44.968Z',NULL);
INSERT INTO "blocks" VALUES('01a1e523bca47fa05e76d5231bc8e14e','01a1e523aa8fed3cdc05db7a0554c7c0','V0000000','note','WORKING','Words.',1,6,NULL,NULL,NULL,NULL,3,'2026-11-16T16:14:46.941Z','2026-11-16T16:14:46.941Z',NULL);
INSERT INTO "blocks" VALUES('01a1e523c550e4ab46d651e32404226c','01a1e523aa8fed3cdc05db7a0554c7c0','V0000000','skill','STABLE','# PDF tools

Read [forms](references/forms.md), then run `scripts/fill.py`.',18,75,'pdf-tools','Reads and fills PDF forms. Use when a PDF is involved.','local','/world/skills/pdf-tools',4,'2026-11-16T16:14:49.152Z','2026-11-16T16:14:49.152Z',NULL);
INSERT INTO "blocks" VALUES('01a1e523e14398de7857ae22d13782f8','01a1e523e12f907c06be4662635dc256','V0000000','system_prompt','PERMANENT','Review.',2,7,NULL,NULL,NULL,NULL,1,'2026-11-16T16:14:56.294Z','2026-11-16T16:14:56.294Z',NULL);
INSERT INTO "blocks" VALUES('01a1e523e1445fca52f5b7c09f4df6c0','01a1e523e12f907c06be4662635dc256','V0000000','skill','STABLE','# PDF tools

Read [forms](references/forms.md), then run `scripts/fill.py`.',18,75,'pdf-tools','Reads and fills PDF forms. Use when a PDF is involved.','local','/world/skills/pdf-tools',1,'2026-11-16T16:14:56.294Z','2026-11-16T16:14:56.294Z',NULL);
INSERT INTO "blocks" VALUES('01a1e523e145313dc437ea2ec18e001b','01a1e523e12f907c06be4662635dc256','V0000000','note','WORKING','Words.',1,6,NULL,NULL,NULL,NULL,1,'2026-11-16T16:14:56.294Z','2026-11-16T16:14:56.294Z',NULL);
CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, session_id TEXT NOT NULL, revision BIGINT NOT NULL,
            kind TEXT NOT NULL, subject TEXT NOT NULL, data TEXT NOT NULL, at TEXT NOT NULL);
INSERT INTO "events" VALUES(1,'01a1e523aa8fed3cdc05db7a0554c7c0',1,'session-created','01a1e523aa8fed3cdc05db7a0554c7c0','{"blocks":0}','2026-11-16T16:14:42.319Z');
INSERT INTO "events" VALUES(2,'01a1e523aa8fed3cdc05db7a0554c7c0',2,'block-added','01a1e523b4ed81797235e57ac11c5171','{"zone":"PERMANENT","after":""}','2026-11-16T16:14:44.968Z');
INSERT INTO "events" VALUES(3,'01a1e523aa8fed3cdc05db7a0554c7c0',3,'block-added','01a1e523bca47fa05e76d5231bc8e14e','{"zone":"WORKING","after":""}','2026-11-16T16:14:46.941Z');
INSERT INTO "events" VALUES(4,'01a1e523aa8fed3cdc05db7a0554c7c0',4,'block-added','01a1e523c550e4ab46d651e32404226c','{"zone":"STABLE","after":""}','2026-11-16T16:14:49.152Z');
INSERT INTO "events" VALUES(5,'01a1e523aa8fed3cdc05db7a0554c7c0',5,'snapshot-saved','01a1e523cd8e8be425dc957d68a80875','{"name":"Before"}','2026-11-16T16:14:51.278Z');
INSERT INTO "events" VALUES(6,'',1,'template-saved','01a1e523d737af97db6f53d3fb95229c','{"name":"Reviews"}','2026-11-16T16:14:53.750Z');
INSERT INTO "events" VALUES(7,'01a1e523e12f907c06be4662635dc256',1,'session-created','01a1e523e12f907c06be4662635dc256','{"blocks":3}','2026-11-16T16:14:56.294Z');
INSERT INTO "events" VALUES(8,'',0,'tokens-changed','','{}','2026-11-16T16:14:58.460577+00:00');
CREATE TABLE schema_migrations (
                version INTEGER PRIMARY KEY NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO "schema_migrations" VALUES(1,'2026-11-16T16:14:42.224Z');
INSERT INTO "schema_migrations" VALUES(2,'2026-11-16T16:14:42.224Z');
INSERT INTO "schema_migrations" VALUES(3,'2026-11-16T16:14:42.224Z');
INSERT INTO "schema_migrations" VALUES(4,'2026-11-16T16:14:42.224Z');
CREATE TABLE sessions (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, budget_permanent BIGINT, budget_stable BIGINT, budget_working BIGINT, budget_total BIGINT,
            version BIGINT NOT NULL, revision BIGINT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
INSERT INTO "sessions" VALUES('01a1e523aa8fed3cdc05db7a0554c7c0','Research',NULL,NULL,NULL,100,1,5,'2026-11-16T16:14:42.319Z','2026-11-16T16:14:51.278Z');
INSERT INTO "sessions" VALUES('01a1e523e12f907c06be4662635dc256','Second',NULL,NULL,NULL,100,1,1,'2026-11-16T16:14:56.294Z','2026-11-16T16:14:56.294Z');
CREATE TABLE shared_skill_files (
            skill_id TEXT NOT NULL REFERENCES shared_skills (id) ON DELETE CASCADE,
            path TEXT NOT NULL, digest TEXT NOT NULL REFERENCES blobs (digest), mode BIGINT NOT NULL, PRIMARY KEY (skill_id, path));
CREATE TABLE shared_skills (id TEXT PRIMARY KEY NOT NULL, origin TEXT NOT NULL,
            version BIGINT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE snapshot_blocks (
            snapshot_id TEXT NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
            id TEXT NOT NULL, position TEXT NOT NULL, type TEXT NOT NULL,
    zone TEXT NOT NULL CHECK (zone IN ('PERMANENT', 'STABLE', 'WORKING')),
    content TEXT NOT NULL, tokens BIGINT NOT NULL, bytes BIGINT NOT NULL,
    skill_name TEXT, skill_description TEXT, source_type TEXT, source_ref TEXT, version BIGINT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL, PRIMARY KEY (snapshot_id, id));
INSERT INTO "snapshot_blocks" VALUES('01a1e523cd8e8be425dc957d68a80875','01a1e523b4ed81797235e57ac11c5171','V0000000','system_prompt','PERMANENT','Review.',2,7,NULL,NULL,NULL,NULL,2,'2026-11-16T16:14:44.968Z','2026-11-16T16:14:44.968Z');
INSERT INTO "snapshot_blocks" VALUES('01a1e523cd8e8be425dc957d68a80875','01a1e523bca47fa05e76d5231bc8e14e','V0000000','note','WORKING','Words.',1,6,NULL,NULL,NULL,NULL,3,'2026-11-16T16:14:46.941Z','2026-11-16T16:14:46.941Z');
INSERT INTO "snapshot_blocks" VALUES('01a1e523cd8e8be425dc957d68a80875','01a1e523c550e4ab46d651e32404226c','V0000000','skill','STABLE','# PDF tools

Read [forms](references/forms.md), then run `scripts/fill.py`.',18,75,'pdf-tools','Reads and fills PDF forms. Use when a PDF is involved.','local','/world/skills/pdf-tools',4,'2026-11-16T16:14:49.152Z','2026-11-16T16:14:49.152Z');
CREATE TABLE snapshots (id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE, name TEXT NOT NULL,
            budget_permanent BIGINT, budget_stable BIGINT, budget_working BIGINT, budget_total BIGINT, revision BIGINT NOT NULL, automatic BIGINT NOT NULL,
            created_at TEXT NOT NULL);
INSERT INTO "snapshots" VALUES('01a1e523cd8e8be425dc957d68a80875','01a1e523aa8fed3cdc05db7a0554c7c0','Before',NULL,NULL,NULL,100,5,0,'2026-11-16T16:14:51.278Z');
CREATE TABLE template_blocks (
            template_id TEXT NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
            ordinal BIGINT NOT NULL, type TEXT NOT NULL,
    zone TEXT NOT NULL CHECK (zone IN ('PERMANENT', 'STABLE', 'WORKING')),
    content TEXT NOT NULL, tokens BIGINT NOT NULL, bytes BIGINT NOT NULL,
    skill_name TEXT, skill_description TEXT, source_type TEXT, source_ref TEXT, PRIMARY KEY (template_id, ordinal));
INSERT INTO "template_blocks" VALUES('01a1e523d737af97db6f53d3fb95229c',0,'system_prompt','PERMANENT','Review.',2,7,NULL,NULL,NULL,NULL);
INSERT INTO "template_blocks" VALUES('01a1e523d737af97db6f53d3fb95229c',1,'skill','STABLE','# PDF tools

Read [forms](references/forms.md), then run `scripts/fill.py`.',18,75,'pdf-tools','Reads and fills PDF forms. Use when a PDF is involved.','local','/world/skills/pdf-tools');
INSERT INTO "template_blocks" VALUES('01a1e523d737af97db6f53d3fb95229c',2,'note','WORKING','Words.',1,6,NULL,NULL,NULL,NULL);
CREATE TABLE templates (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL,
            description TEXT NOT NULL, budget_permanent BIGINT, budget_stable BIGINT, budget_working BIGINT, budget_total BIGINT, version BIGINT NOT NULL,
            created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
INSERT INTO "templates" VALUES('01a1e523d737af97db6f53d3fb95229c','Reviews','Papers.',NULL,NULL,NULL,100,1,'2026-11-16T16:14:53.750Z','2026-11-16T16:14:53.750Z');
CREATE TABLE tokens (id TEXT PRIMARY KEY NOT NULL, label TEXT NOT NULL,
            digest TEXT NOT NULL, created_at TEXT NOT NULL);
INSERT INTO "tokens" VALUES('fa8b500f','laptop','ef91a39fb4e5c138f09f12fe0292ba38453cc4a09596baa5265cc57f2fcb2153','2026-11-16T16:14:58.460577+00:00');
CREATE TABLE upload_files (
            source TEXT NOT NULL REFERENCES uploads (source) ON DELETE CASCADE,
            path TEXT NOT NULL, digest TEXT NOT NULL REFERENCES blobs (digest), mode BIGINT NOT NULL, PRIMARY KEY (source, path));
CREATE TABLE uploads (source TEXT PRIMARY KEY NOT NULL, content_hash TEXT NOT NULL,
            used BIGINT NOT NULL, updated_at TEXT NOT NULL);
CREATE UNIQUE INDEX blocks_order ON blocks (session_id, zone, position)
            WHERE deleted IS NULL;
CREATE INDEX blocks_skill ON blocks (session_id, skill_name);
CREATE INDEX blocks_deleted ON blocks (session_id, deleted);
CREATE INDEX events_session ON events (session_id, seq);
CREATE UNIQUE INDEX templates_name ON templates (name);
CREATE INDEX snapshots_session ON snapshots (session_id, revision);
CREATE INDEX shared_skill_files_digest ON shared_skill_files (digest);
CREATE INDEX upload_files_digest ON upload_files (digest);
CREATE UNIQUE INDEX tokens_label ON tokens (label);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',8);
COMMIT;
