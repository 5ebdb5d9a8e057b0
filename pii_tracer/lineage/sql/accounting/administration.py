"""Statements of administration: recognised from the first word to the last, whatever the parser makes of them.

Of a warehouse's statements a third can be administration, and a plan with a gap for each of them is waived unread. So a
statement is compared with a list of forms, by its words alone: comments go, texts and numbers count as such, quoted
names as names. A form names every word, but for a tail that holds no word of a statement that moves data (`_MOVES`).
What is in no form is not understood.

Sources of the forms: the references of Spark, Iceberg (Spark DDL), Delta, Databricks, Hive, Trino, Snowflake,
BigQuery, Redshift, PostgreSQL, MySQL, SQL Server, Oracle and ClickHouse. Not among them on purpose: SHARE,
PUBLICATION, SUBSCRIPTION, replication and failover (they give others the rows), BACKUP, RESTORE, UNDROP, CLONE, SWAP,
EXCHANGE, ATTACH, PUT and GET.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?P<gap>\s+|--[^\n]*|/\*(?![!+]).*?\*/)
    |(?P<text>'(?:[^'\\]|''|\\.)*'|\$\$.*?\$\$)
    |(?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]\[]*\])
    |(?P<word>[^\W\d][\w$]*|@@?\w+|:\w+)
    |(?P<number>\d[\w.]*)
    |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)

_QUERIES = "SELECT INSERT UPDATE DELETE MERGE COPY UNLOAD EXPORT IMPORT LOAD CALL EXEC EXECUTE"
_MOVES = (
    f"{_QUERIES} AS FROM INTO VALUES CLONE SWAP EXCHANGE ATTACH APPEND RENAME LOCATION UNDROP RESTORE REPLICATION"
    " CREATE ALTER DROP TRUNCATE BACKUP SWITCH TRANSFER FETCH MOVE INHERIT BULK"
)
"""Words of statements and clauses that bring data from one place to another, and with which statements begin."""


def _any(*words: str) -> str:
    return f"(?:{'|'.join(words)})"


_STARTS = _any(
    "BACKUP|RESTORE|UNDROP|SWITCH|TRANSFER|FETCH|BULK|EXCHANGE|SWAP|ATTACH|CLONE|APPEND",
    *("CREATE", "TRUNCATE", "ALTER (?!(?:ATTRIBUTE|COLUMN)\\b)", "RENAME (?!TO\\b|VALUE\\b|ATTRIBUTE\\b)"),
)
ANOTHER = rf"(?<!\. ){_STARTS}\b(?! \.)"
"""How another statement begins, which needs no semicolon before it, or a clause that brings data."""
_WORD = rf"(?!{_any(*_MOVES.split())}\b)\w+"
"""A word that moves no data."""
_ONE = r"(?:@|[^\W\d][\w$]*)"
_NAME = rf"(?!{_any(*_QUERIES.split())} [^.]){_ONE}(?: \. {_ONE})*"
"""A name. A verb that more words follow is none: it may begin a statement of its own."""
_PLACES: Mapping[str, str] = {
    "<n>": _NAME,
    "<tail>": rf"(?: (?!{_any(*_MOVES.split())}\b)\S+)*",
    "<rules>": rf"(?: (?!{_any(*_QUERIES.split())}\b|{ANOTHER})\S+)*",
    "<rights>": r"(?: (?!(?:AS|FROM|INTO|VALUES|WHERE|JOIN|=|TO (?:SHARE|DATASHARE))(?: |$))\S+)*",
    "<exists>": r"(?:IF (?:NOT )?EXISTS )?",
}
"""`<tail>`: words none of which moves data. `<rules>`: an expression, without a query. `<rights>`: what names kinds of
statements and runs none; a second statement without a semicolon between them does not pass."""

_PRINCIPAL = _any(
    *("USER", "ROLE", "GROUP", "LOGIN", "PROFILE", "DATABASE ROLE", "APPLICATION ROLE", "SERVER ROLE", "USER MAPPING"),
    *("(?:DATABASE SCOPED |STORAGE |SERVICE )?CREDENTIAL", "SECRET", "CERTIFICATE", "(?:A?SYMMETRIC|MASTER) KEY"),
    "(?:PASSWORD|SESSION|AUTHENTICATION|NETWORK|PACKAGES) POLICY",
    "(?:MASKING|ROW ACCESS|AGGREGATION|PROJECTION|PRIVACY|JOIN) POLICY",
    *("NETWORK RULE", "SECURITY POLICY", "ROW POLICY", "POLICY", "QUOTA", "SETTINGS PROFILE"),
)
_ENGINE = _any(
    *(
        "WAREHOUSE",
        "RESOURCE (?:MONITOR|GROUP|PLAN)",
        "COMPUTE POOL",
        "CAPACITY",
        "RESERVATION",
        "ASSIGNMENT",
        "BUDGET",
    ),
    "(?:STORAGE |API |NOTIFICATION |SECURITY |CATALOG |EXTERNAL ACCESS )?INTEGRATION",
    *("EXTERNAL VOLUME", "CONNECTION", "(?:EXTERNAL )?FILE FORMAT", "TAG", "TABLESPACE", "FILEGROUP", "COLLATION"),
    *("PARTITION (?:FUNCTION|SCHEME)", "CONVERSION", "OPERATOR(?: CLASS| FAMILY)?", "EXTENSION", "STATISTICS"),
    *("(?:TRUSTED )?(?:PROCEDURAL )?LANGUAGE", f"TEXT SEARCH {_WORD}", f"FULLTEXT {_WORD}", f"WORKLOAD {_WORD}"),
    "ENDPOINT",
    *("ASSEMBLY", "SEQUENCE", "TYPE", "DOMAIN", "INDEX", "NAMED COLLECTION"),
    rf"(?:SEARCH|VECTOR|BITMAP|UNIQUE|CLUSTERED|NONCLUSTERED|SPATIAL|COLUMNSTORE)(?: {_WORD})? INDEX",
    "WIDGET (?:TEXT|DROPDOWN|COMBOBOX|MULTISELECT)",
)
_CLUSTER = r"(?: ON CLUSTER (?:<n>|'|\{ <n> \}))?"
_TABLE = rf"(?:{_WORD} )?(?:VIEW|TABLE) <exists>(?:ONLY )?<n>{_CLUSTER}"
_POLICY = "(?:ROW ACCESS|MASKING|AGGREGATION|PROJECTION|JOIN|STORAGE LIFECYCLE) POLIC(?:Y|IES)"
_SWITCHED = _any("TASK", "ALERT", "PIPE", "EVENT", "TRIGGER", "STREAM", "SERVICE", "NOTEBOOK", "STREAMLIT")
_LAID_OUT = _any(
    *("CLUSTER BY", "CLUSTER ON", "SET WITHOUT CLUSTER", "DROP CLUSTERING KEY", "(?:SUSPEND|RESUME)(?: RECLUSTER)?"),
    *("(?:ADD|DROP) SEARCH OPTIMIZATION", "ALTER (?:SORTKEY|DISTSTYLE|DISTKEY|COMPOUND SORTKEY)"),
    *("COMPACT '", "CONCATENATE", "TOUCH", "RECOVER PARTITIONS"),
    "EXECUTE (?:OPTIMIZE|EXPIRE_SNAPSHOTS|REMOVE_ORPHAN_FILES|DROP_EXTENDED_STATS|OPTIMIZE_MANIFESTS)",
    "ALTER COLUMN <n> SET (?:STATISTICS|STORAGE|COMPRESSION)",
)
_SETTINGS = _any(
    *("TBLPROPERTIES", "DBPROPERTIES", "PROPERTIES", "TAGS?", "OPTIONS", "COMMENT", "SERDE", "SERDEPROPERTIES"),
    *("FILEFORMAT", "LOGGED", "UNLOGGED", "DATA_RETENTION_TIME_IN_DAYS", "CHANGE_TRACKING", "STATISTICS"),
    *("DEFAULT_DDL_COLLATION", "TIMEZONE", "COMPATIBILITY_LEVEL", "RECOVERY", "ALLOW_SNAPSHOT_ISOLATION"),
)
_ELSEWHERE = r"(?:.* )?(?:TEMPLATE|ENGINE|SHARE|DATASHARE|CATALOG|ARN|LINK|PROVIDER)(?: |$)"
"""Words by which a database has the rows of another one."""
_HELPS = (
    "(?:TEXT|INDEX|DB|CONSTRAINT|USER|ROLE|ROLEMEMBER|FILE|FILEGROUP|LOGINS|TRIGGER|SERVER|SORT|STATS|SRVROLE|SRVROLEMEMBER"
    "|DBFIXEDROLE|LANGUAGE|DEVICE|EXTENDEDPROC|LINKEDSRVLOGIN|NTGROUP|REMOTELOGIN|ROTECT)?"
)
"""SQL Server's procedures that describe: https://learn.microsoft.com/sql/relational-databases/system-stored-procedures."""
_DECLARED = _any(
    *("IMMUTABLE", "STABLE", "VOLATILE", "STRICT", "CALLED ON NULL INPUT", "RETURNS NULL ON NULL INPUT"),
    *("(?:NOT )?LEAKPROOF", "(?:EXTERNAL )?SECURITY", "PARALLEL", "COST", "ROWS", "SUPPORT", "NO DEPENDS"),
)

_FORMS: Mapping[str, tuple[str, ...]] = {
    "who may do what": (
        "(?:GRANT|DENY|ALTER DEFAULT PRIVILEGES)<rights>",
        "(?:ALTER DEFAULT PRIVILEGES<rights> )?REVOKE<rights> FROM<rights>",
        f"CREATE (?:OR (?:REPLACE|ALTER) )?{_PRINCIPAL}<rules>",
        f"(?:ALTER|DROP) {_PRINCIPAL}<rules>",
        "CREATE POLICY <n> ON <n>(?: AS (?:PERMISSIVE|RESTRICTIVE))? FOR (?:SELECT|INSERT|UPDATE|DELETE)<rules>",
        f"ALTER {_TABLE} (?:(?:ADD|DROP|SET|UNSET) (?:ALL )?{_POLICY}|(?:SET|DROP) ROW FILTER)<tail>",
        f"ALTER {_TABLE} (?:ENABLE|DISABLE|FORCE|NO FORCE) ROW LEVEL SECURITY",
        f"ALTER {_TABLE} (?:ALTER|MODIFY) (?:COLUMN )?<n> (?:SET|UNSET|DROP) (?:MASK|{_POLICY})<tail>",
        "SECURITY LABEL<tail>",
        f"(?:SET|UNSET) TAGS? ON {_WORD} <n><tail>",
        "ALTER SCHEMA <exists><n> (?:ENABLE|DISABLE) MANAGED ACCESS",
        "DROP (?:RLS|MASKING|ROW|ROW ACCESS) POLICY<rules>",
        "CREATE SECURITY POLICY <n>(?:(?: ,)? ADD (?:FILTER|BLOCK) PREDICATE <n> \\(<tail> \\) ON <n>"
        "(?: (?:AFTER|BEFORE) (?:INSERT|UPDATE|DELETE))?)+(?: WITH \\(<tail> \\))?(?: NOT FOR REPLICATION)?",
        r"ALTER (?:\w+ ){1,3}<exists><n> (?:SET )?OWNER TO <n>",
        "(?:SET|RESET) (?:SESSION AUTHORIZATION|ROLE)<tail>",
        "(?:REASSIGN|DROP) OWNED BY<tail>",
        r"CREATE POLICY <n> ON <n>(?: (?:USING|WITH CHECK) \( .* \))+",
        "(?:ATTACH|DETACH) (?:MASKING|RLS) POLICY<rules>",
        "CREATE (?:RLS|ROW) POLICY<rules>",
        f"ALTER {_TABLE} SET AUTHORIZATION<tail>",
        f"ALTER {_TABLE} ALTER COLUMN <n> (?:ADD|DROP) MASKED<tail>",
        "ALTER AUTHORIZATION ON<rights>",
        "(?:NO)?AUDIT<rights>",
        "(?:OPEN|CLOSE) (?:A?SYMMETRIC|MASTER) KEY<rules>",
        "CREATE RECIPIENT<tail>",
        "DROP (?:PUBLICATION|SUBSCRIPTION|SHARE|DATASHARE) <exists><n><tail>",
        "ALTER SHARE <exists><n> (?:(?:SET|UNSET) (?:COMMENT|TAG)(?!.* (?:ACCOUNTS|SECURE_OBJECTS_ONLY"
        r"|SHARE_RESTRICTIONS)\b)<tail>|REMOVE ACCOUNTS<tail>)",
    ),
    "what the engine uses": (
        f"CREATE (?:OR REPLACE )?(?:TEMP(?:ORARY)? |GLOBAL |LOCAL )?{_ENGINE}<tail>",
        f"(?:ALTER|DROP) (?:TEMP(?:ORARY)? )?{_ENGINE}<rules>",
        "CREATE (?:OR REPLACE )?(?:EXTERNAL )?(?:LOCATION|SERVER|FOREIGN DATA WRAPPER)<rules>",
        "CREATE (?:OR REPLACE )?(?:EXTERNAL )?CATALOG(?! <exists><n> USING SHARE)<rules>",
        "ALTER (?:ACCOUNT|SYSTEM|SERVER CONFIGURATION|SERVER|ORGANIZATION)<tail>",
        "(?:SYSTEM|RECONFIGURE|SHUTDOWN|KILL|DBCC(?! CLONEDATABASE)|FLUSH|PURGE|DISCARD|REINDEX|CHECKPOINT|INSTALL"
        "|UNINSTALL)<tail>",
        "REMOVE WIDGET <n>",
        r"(?:LIST|LS|REMOVE|RM) @\S*<tail>",
        "CREATE (?:EXTERNAL )?VOLUME <exists><n>(?: LOCATION ')?",
        "DROP (?:VOLUME|RECIPIENT|SNAPSHOT TABLE) <exists><n>",
        "CREATE (?:DOMAIN(?!.* DEFAULT (?!NULL))|CAST|AGGREGATE|ACCESS METHOD|PARTITION FUNCTION)<rules>",
        r"CREATE TYPE <n> AS (?:TABLE|ENUM) \(<rules> \)",
        "CREATE DIRECTORY <n> AS '",
        r"CREATE TEMPORARY MACRO <n> \(<tail> \)<tail>",
        "LOAD (?:'|<n>)|ADD JAR '|CANCEL 0<tail>|ADMIN SET<tail>|XA<tail>|WHENEVER<tail>",
        "ALTER DATABASE <n> SET<tail>",
        f"CREATE (?:OR REPLACE )?(?:DATABASE|SCHEMA) (?!{_ELSEWHERE})<exists><n><tail>",
        "ALTER (?:DATABASE|SCHEMA) <exists><n> (?:RESET|UNSET|COLLATE|QUOTA|(?:WITH )?CONNECTION LIMIT)<tail>",
        "ALTER DATABASE SCOPED CONFIGURATION<tail>",
        "ALTER SESSION (?:ENABLE|DISABLE|FORCE|ADVISE|CLOSE DATABASE LINK)<tail>",
        "EXEC SP_UPDATESTATS",
        f"EXEC(?:UTE)? (?:SYS \\. )?SP_(?:HELP{_HELPS}|WHO2?|CONFIGURE|LOCK|SPACEUSED|DEPENDS|COLUMNS|TABLES"
        "|STORED_PROCEDURES)(?:<tail>)",
        "(?:FORCE )?INSTALL <n>(?: FROM (?:<n>|'))?|FORCE CHECKPOINT|UPDATE EXTENSIONS",
        "ALTER EXTENSION <n> UPDATE(?: TO (?:'|<n>))?",
        "DROP CAST <exists>\\( <n>(?: \\(<tail> \\))? AS <n>(?: \\(<tail> \\))? \\)(?: CASCADE| RESTRICT)?",
        "DROP (?:MODEL|PACKAGE(?: BODY)?|XML SCHEMA COLLECTION|LIBRARY|PREPARE|EXTERNAL (?:DATA SOURCE|LIBRARY))"
        " <exists><n><tail>",
        "DROP (?:STAGE|STREAMLIT|NOTEBOOK|DBT PROJECT|DCM PROJECT|CORTEX SEARCH SERVICE|(?:PUBLIC )?DATABASE"
        " LINK) <exists><n><tail>",
        "ALTER (?:PUBLIC )?(?:FUNCTION|PROCEDURE|PACKAGE|TRIGGER|VIEW|MATERIALIZED VIEW|SYNONYM|TYPE|JAVA CLASS)"
        " <exists><n> COMPILE<tail>",
        "ALTER (?:FUNCTION|PROCEDURE|ROUTINE|AGGREGATE) <exists><n>(?: \\(<tail> \\))? RENAME TO <n>",
        "ALTER (?:STAGE(?! <exists><n> SET (?:.* )?URL\\b)|VOLUME|EXTERNAL VOLUME|CORTEX SEARCH SERVICE|DBT"
        " PROJECT|DCM PROJECT) <exists><n> (?:SET|UNSET|SUSPEND|RESUME|OWNER TO)<tail>",
        "ALTER (?:PROJECT|ORGANIZATION)(?: <n>)? SET OPTIONS<tail>",
        "ALTER (?:CATALOG|SCHEMA|DATABASE|TABLE) <exists><n> (?:ENABLE|DISABLE|INHERIT) PREDICTIVE OPTIMIZATION",
        "ALTER (?:CATALOG|SCHEMA|DATABASE|VOLUME) <exists><n> (?:DEFAULT COLLATION|OPTIONS \\()<tail>",
        "CREATE (?:DATABASE|SCHEMA|NAMESPACE) <exists><n>(?: COMMENT '| (?:MANAGED )?LOCATION '| WITH"
        " (?:DB)?PROPERTIES \\(<tail> \\))+",
        "ALTER DATABASE <n>(?: WITH)?(?: (?:ALLOW_CONNECTIONS|IS_TEMPLATE|CONNECTION LIMIT)(?: =)? [^ ]+)+",
        "ALTER DATABASE <n> (?:REFRESH COLLATION VERSION|SET TABLESPACE <n>)",
        "ALTER (?:DATABASE|SCHEMA)(?: <n>)?(?: DEFAULT)? (?:CHARACTER SET|CHARSET|COLLATE|ENCRYPTION|READ ONLY)<tail>",
        "ALTER DATABASE <n> MODIFY (?:\\((?: (?:EDITION|SERVICE_OBJECTIVE|MAXSIZE)\\b)"
        "|(?:BACKUP_STORAGE_REDUNDANCY|FILEGROUP) )<tail>",
        "ALTER DATABASE <n> (?:ADD|REMOVE) (?:LOG )?FILE(?:GROUP)?\\b<tail>",
        "ALTER FULLTEXT INDEX ON <n> (?:ENABLE|DISABLE|(?:START|STOP|PAUSE|RESUME)(?: (?:FULL|INCREMENTAL"
        "|UPDATE))? POPULATION|SET<tail>)",
        r"CREATE FULLTEXT (?:CATALOG|STOPLIST) <n>(?: FROM (?:SYSTEM STOPLIST|<n>))?(?: WITH ACCENT_SENSITIVITY"
        r" = \w+)?(?: AS DEFAULT)?(?: AUTHORIZATION <n>)?",
        r"ALTER PARTITION FUNCTION <n> \( \) (?:MERGE|SPLIT) RANGE \(<tail> \)",
        r"CREATE PARTITION SCHEME <n> AS PARTITION <n>(?: ALL)? TO \(<tail> \)",
        r"CREATE TYPE <exists><n> FROM \w+(?: \( 0(?: , 0)? \))?(?: NOT)?(?: NULL)?",
        r"CREATE (?:OR REPLACE )?(?:(?:NON)?EDITIONABLE )?TYPE <exists><n>(?: FORCE)?(?: (?:OID|AUTHID)<tail>)?"
        r" (?:AS|IS) (?:(?:OBJECT|RANGE|ENUM) \(<rules> \)|(?:TABLE|VARRAY \( 0 \)) OF (?:REF )?<n>"
        r"(?: \( 0(?: , 0| BYTE| CHAR)? \))?(?: NOT NULL)?)(?: (?:NOT )?(?:FINAL|INSTANTIABLE|PERSISTABLE))*",
        r"CREATE (?:OR REPLACE )?TYPE <n> UNDER <n>(?: \(<rules> \))?<tail>",
        r"CREATE TYPE <n>(?: AS (?:<n>(?: \( 0 \))?|\(<rules> \)|'))?",
        "CREATE XML SCHEMA COLLECTION <n> AS (?:'|N '|@\\w+)|ALTER XML SCHEMA COLLECTION <n> ADD (?:'|N '|@\\w+)",
        r"CREATE (?:OR REPLACE )?(?:DBT PROJECT|DCM PROJECT|LIBRARY|EVENT TABLE) <exists><n>(?! FROM )<tail>",
        r"CREATE (?:OR REPLACE )?LIBRARY <n> LANGUAGE \w+ FROM '(?: (?:REGION|CREDENTIALS|IAM_ROLE|WITH)\b<tail>)?",
        "(?:DEFINE|UNSET|UNDEFINE|PROMPT|ACCEPT|REMARK|REM|PAUSE) (?!\\w+ TABLE\\b|TABLE\\b|VIEW\\b|PIPE\\b"
        "|TASK\\b|DYNAMIC\\b)<tail>",
        "SYSTEM (?:STOP|START) REPLICATION QUEUES(?: <n>)?|SYSTEM DROP<tail>(?: FROM (?:TABLE|DATABASE|ZKPATH"
        "|SHARD) (?:<n>|'))?",
        r"ALTER SESSION SYNC WITH PRIMARY|PURGE<tail>",
        "OPEN (?:GLOBAL )?(?:<n>|@\\w+)(?: USING<tail>)?",
        "GET (?:CURRENT |STACKED )?DIAGNOSTICS<tail>|(?:SIGNAL|RESIGNAL)<tail>",
        "ASSERT<tail>|(?:DEFINE|CREATE) TAG<tail>",
    ),
    "the same rows are laid out again, or counted": (
        rf"ALTER {_TABLE} (?:PARTITION \(<tail> \) )?{_LAID_OUT}<tail>",
        "(?:OPTIMIZE|FSCK REPAIR TABLE|(?:CHECK|REPAIR|CHECKSUM)(?: LOCAL| NO_WRITE_TO_BINLOG)? TABLES?|CLUSTER"
        "|RUNSTATS|COLLECT STATISTICS|REORG)<tail>",
        r"GENERATE SYMLINK_FORMAT_MANIFEST FOR TABLE <n>(?: \. @)?",
        r"UPDATE STATISTICS <n>(?: WITH \w+)?",
        r"CREATE STATISTICS <exists><n>(?: \(<tail> \))? ON<tail> FROM <n>",
        "ANALYZE COMPRESSION <n>|DESCRIBE DETAIL <n>",
        "ALTER MATERIALIZED VIEW <n> REBUILD",
        "MSCK (?:REPAIR )?TABLE <n>(?: (?:ADD|DROP|SYNC) PARTITIONS)?",
        r"ANALYZE (?:\(<tail> \) )?(?!(?:UPDATE|DELETE|INSERT|REPLACE|FORMAT)\b)<n><tail>",
        f"ALTER {_TABLE} (?:(?:UN)?ARCHIVE PARTITION|SHRINK SPACE|REBUILD|MOVE TABLESPACE)<tail>",
        f"ALTER {_TABLE} (?:MATERIALIZE|CLEAR) (?:COLUMN|INDEX|PROJECTION|TTL)<tail>",
        f"ALTER {_TABLE} REORGANIZE PARTITION<tail> INTO(?: (?!SELECT )\\S+)*",
        f"ALTER {_TABLE} SPLIT PARTITION<tail> INTO(?: (?!SELECT )\\S+)*",
    ),
    "how a table keeps its own rows and versions": (
        f"ALTER {_TABLE} (?:CREATE(?: OR REPLACE)?|REPLACE) (?:TAG|BRANCH) <exists><n>(?: AS OF VERSION 0)?<tail>",
        f"ALTER {_TABLE} DROP (?:TAG|BRANCH) <exists><n>",
        f"ALTER {_TABLE} WRITE (?:(?:LOCALLY )?ORDERED BY|UNORDERED|DISTRIBUTED BY PARTITION)<tail>",
        f"ALTER {_TABLE} (?:ADD|DROP|REPLACE) PARTITION FIELD<tail>(?: AS <n>)?",
        f"ALTER {_TABLE} (?:SET|DROP) IDENTIFIER FIELDS<tail>",
        f"ALTER {_TABLE} (?:SET|UNSET) {_SETTINGS}<tail>",
        f"ALTER (?:DATABASE|SCHEMA|CATALOG|NAMESPACE) <exists><n> (?:SET|UNSET) {_SETTINGS}<tail>",
        f"ALTER {_TABLE} (?:ADD(?!.* DEFAULT )|DROP|ALTER|VALIDATE) (?:FEATURE|CONSTRAINT|PRIMARY KEY|FOREIGN KEY"
        "|UNIQUE)<tail>",
        f"ALTER {_TABLE} DROP FEATURE <n> TRUNCATE HISTORY",
        f"ALTER {_TABLE} (?:ENABLE|DISABLE) (?:TRIGGER|RULE|CONSTRAINT)<tail>",
        f"ALTER {_TABLE} REPLICA IDENTITY<tail>",
        f"ALTER {_TABLE} (?:ALTER|MODIFY)(?: COLUMN)? <n> (?:SET|UNSET) (?:TAGS?|OPTIONS)<tail>",
        f"ALTER {_TABLE} ALTER COLUMN <n> ENCODE <n>",
        rf"ALTER {_TABLE} (?:SET|RESET) \( (?:AUTOVACUUM|TOAST|FILLFACTOR|PARALLEL|USER_CATALOG_TABLE"
        rf"|LOG_AUTOVACUUM)\w*<tail> \)",
        f"ALTER {_TABLE} CONVERT TO CHARACTER SET<tail>",
        f"ALTER {_TABLE} DROP PARTITION <n><tail>",
        rf"ALTER {_TABLE} ADD PARTITION \( PARTITION <n> VALUES (?:LESS THAN|IN) \(<tail> \) \)",
        f"ALTER {_TABLE} (?:WITH (?:NO)?CHECK )?(?:NOCHECK|CHECK) CONSTRAINT<tail>",
        f"ALTER {_TABLE} ADD PERIOD FOR SYSTEM_TIME<tail>",
        rf"ALTER {_TABLE} MODIFY \( <n> \w+(?: \( 0(?: , 0)? \))?(?: NOT)?(?: NULL)? \)",
        rf"ALTER {_TABLE} MODIFY COLUMN <n> \w+ CODEC \(<tail> \)",
        f"ALTER {_TABLE} (?:SET UNUSED|(?:ENABLE|DISABLE) ROW MOVEMENT|MODIFY SETTING|ACTIVATE NOT LOGGED)<tail>",
        "TRUNCATE TABLE <n> (?:DROP|REUSE) STORAGE",
        "TRUNCATE (?:DATABASE|(?:ALL )?TABLES FROM) <exists><n><tail>",
        "ALTER (?:DYNAMIC TABLE|EVENT TABLE|MATERIALIZED VIEW) <exists><n> (?:SET|UNSET|RESET)(?! SCHEMA )<tail>",
        "ALTER (?:DYNAMIC TABLE|MATERIALIZED VIEW) <exists><n> (?:SUSPEND|RESUME|REFRESH)<tail>",
        "DETACH (?:TABLE|VIEW|DICTIONARY|DATABASE)?<tail>",
        "(?:LOCK|UNLOCK) TABLES?<tail>",
        rf"TRUNCATE (?:TEMPORARY )?(?:TABLE )?<exists><n>{_CLUSTER}(?: SYNC)?(?: SETTINGS \w+ = \w+(?: , \w+ = \w+)*)?",
        f"ALTER {_TABLE} (?:MODIFY )?COMMENT (?:COLUMN <exists><n> )?'",
        rf"ALTER {_TABLE} MODIFY COLUMN <exists><n> REMOVE \w+",
        rf"ALTER {_TABLE} (?:REMOVE (?:TTL|SAMPLE BY)|MODIFY (?:SETTING|(?:TTL|ORDER BY|SAMPLE BY)(?!.* SET ))"
        rf"|RESET SETTING|UNFREEZE)<tail>",
        rf"ALTER {_TABLE} (?:ADD(?!.* DEFAULT )|DROP|CLEAR|MATERIALIZE) (?:INDEX|PROJECTION|CONSTRAINT"
        r"|STATISTICS)\b<tail>",
        rf"ALTER {_TABLE} DROP DETACHED PART(?:ITION)?<tail>",
        rf"ALTER {_TABLE} RENAME CONSTRAINT <n> TO <n>",
        rf"ALTER {_TABLE} (?:ALTER|MODIFY|VALIDATE) (?:CONSTRAINT|UNIQUE|PRIMARY KEY|FOREIGN KEY)<tail>",
        rf"ALTER {_TABLE} (?:SET|UNSET) (?:CONTACT|EXECUTE|SCHEDULE)<tail>",
        rf"ALTER {_TABLE} (?:ADD|DROP|ALTER) SCHEDULE<tail>",
        rf"ALTER {_TABLE} (?:ALTER|MODIFY)(?: COLUMN)? <n> UNSET COMMENT",
        rf"ALTER {_TABLE} ALTER(?: COLUMN)? <n> (?:SET|RESET) \(<tail> \)",
        r"ALTER (?:MATERIALIZED )?VIEW <exists><n> (?:SET|RESET) \(<tail> \)",
        rf"ALTER {_TABLE} SET (?:TABLESPACE|ACCESS METHOD) <n>(?: NOWAIT)?",
        r"ALTER (?:TABLE|INDEX|MATERIALIZED VIEW) ALL IN TABLESPACE <n>(?: OWNED BY <n>(?: , <n>)*)? SET"
        r" TABLESPACE <n>(?: NOWAIT)?",
        rf"ALTER {_TABLE} (?:CLUSTER ON <n>|SET WITHOUT CLUSTER|(?:NO )?DEPENDS ON EXTENSION <n>|OWNER TO <n>)",
        rf"ALTER {_TABLE} WITH SCHEMA (?:BINDING|COMPENSATION|(?:TYPE )?EVOLUTION)",
        rf"ALTER {_TABLE} DROP PERIOD FOR SYSTEM_TIME",
        "ALTER DYNAMIC TABLE <exists><n> REFRESH COPY SESSION",
    ),
    "a setting of the session, or a message to the client": (
        "ALTER SESSION (?:UN)?SET<tail>",
        "(?:PRINT|RAISERROR|THROW|RAISE|WAITFOR|DELIMITER|HELP|LISTEN|UNLISTEN|NOTIFY|DEALLOCATE|CLOSE|ABORT"
        "|RELOAD)<tail>",
        "GO(?: 0)?",
        r"DBMS_OUTPUT \. \w+(?: \(<rules> \))?",
        "DATABASE <n>",
    ),
    "the borders of a transaction": (
        "(?:SAVEPOINT|SAVE TRAN(?:SACTION)?|RELEASE(?: SAVEPOINT)?) <n>",
        "(?:ROLLBACK|COMMIT)(?: (?:WORK|TRAN|TRANSACTION))?(?: TO)?(?: SAVEPOINT)?(?: <n>)?",
        "BEGIN (?:WORK|TRAN|TRANSACTION)(?: <n>)?",
        "(?:START|SET) TRANSACTION<tail>",
        "END|BEGIN STATEMENT SET|BT|ET",
        "END (?:IF|LOOP|CASE|REPEAT|WHILE)(?: <n>)?",
    ),
    "a description": (
        "COMMENT (?:IF EXISTS )?ON<rights>",
        "DESC(?:RIBE)? (?:RESULT|SHARE|DATASHARE|USER|ROLE|WAREHOUSE|DATABASE|SCHEMA|PIPE|STREAM|TASK|STAGE"
        "|SEQUENCE|FUNCTION"
        r"|PROCEDURE|VOLUME|CATALOG|EXTERNAL LOCATION|CREDENTIAL|STORAGE CREDENTIAL|CONNECTION|RECIPIENT|PROVIDER"
        rf"|TRANSACTION|(?:{_WORD} ){{1,2}}(?:INTEGRATION|POLICY|TABLE|SERVICE|PROJECT|VOLUME|FORMAT|RULE|MONITOR"
        r"|VIEW))\b<tail>",
    ),
    "a job is switched or removed, and no rows are added": (
        f"ALTER {_SWITCHED} <exists><n> (?:SUSPEND|RESUME|ENABLE|DISABLE|REFRESH|SET|UNSET)<tail>",
        "ALTER TASK <exists><n> (?:ADD|REMOVE) AFTER <n>(?: , <n>)*|ALTER TASK <exists><n> (?:REMOVE WHEN|MODIFY"
        " WHEN<tail>)",
        f"DROP {_SWITCHED}<tail>(?: ON <n>)?",
        "DROP (?:(?:TEMP|TEMPORARY|AGGREGATE) )?(?:FUNCTION|PROCEDURE|MACRO|RULE|CAST|SERVER|CATALOG|LOCATION)<tail>",
        r"ALTER (?:FUNCTION|PROCEDURE|AGGREGATE) <n>(?: \(<tail> \))? (?:OWNER|SET|UNSET|RESET|DEPENDS|COMMENT)<tail>",
        rf"ALTER (?:FUNCTION|PROCEDURE|ROUTINE) <n>(?: \(<tail> \))? {_DECLARED}<tail>",
    ),
}


def _compiled(form: str) -> str:
    for word, pattern in _PLACES.items():
        form = form.replace(word, pattern)
    return form


_KNOWN = {reason: re.compile("|".join(f"(?:{_compiled(form)})" for form in forms)) for reason, forms in _FORMS.items()}


_NOT_HERE = re.compile(
    r"\s*(?:SELECT|WITH|INSERT|MERGE|DELETE|FROM|VALUES|CREATE\s+(?:OR\s+REPLACE\s+)?(?:\w+\s+){0,2}(?:TABLE|VIEW)\b)",
    re.IGNORECASE,
)
"""Most texts: they need not be cut into words."""


_MORE_CLAUSES = re.compile(
    r"ALTER (?:\w+ )*(?:TABLE|VIEW)\b.*, (?:ADD|ALTER|ATTACH|CHANGE|CLEAR|DELETE|DISCARD|DROP|EXCHANGE|FETCH|FREEZE"
    r"|IMPORT|INHERIT|MATERIALIZE|MODIFY|MOVE|RENAME|REPLACE|SET|SWITCH|UNION|UPDATE)\b"
)
"""A table may be altered in several ways at once: a form says what the first one is."""
_BEHIND_RIGHTS = re.compile(
    r"(?:GRANT|DENY|REVOKE|ALTER DEFAULT PRIVILEGES|ALTER AUTHORIZATION|COMMENT|(?:NO)?AUDIT) .*\b"
    rf"(?:TO|FROM|IS|BY|ON) .*\b(?:{_QUERIES.replace(' ', '|').replace('COPY', 'COPY (?!CURRENT)')}|{ANOTHER})\b"
)
"""Verbs that are no rights: they stand behind the names of those who have them."""


def administration(text: str) -> str | None:
    """Why a statement moves no data, if it is one of administration from its first word to its last; None otherwise."""
    if _NOT_HERE.match(text):
        return None
    words = words_of(text)
    if _MORE_CLAUSES.match(words) or _BEHIND_RIGHTS.match(words):
        return None
    return next((reason for reason, known in _KNOWN.items() if known.fullmatch(words)), None)


def kind_of(text: str) -> str:
    """What a statement is called in front of people, by its first words: `ALTER WAREHOUSE`. No name is among them."""
    words = words_of(text).split()
    first = [word for word in words[:2] if word.isalpha() and word.isupper()]
    return " ".join(first[: 1 if len(first) == 2 and first[0] not in _TAKE_A_KIND else 2])


_TAKE_A_KIND = frozenset({"ALTER", "CREATE", "DROP", "UNDROP"})


@lru_cache(maxsize=4096)
def words_of(text: str) -> str:
    """Its words in capitals, one blank between any two: `'` for texts, `0` for numbers, `@` for names in quotes."""
    found: list[str] = []
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in ("word", "sign"):
            found.append(token.group().upper())
        elif kind != "gap":
            found.append({"text": "'", "name": "@", "number": "0"}[str(kind)])
    while found and found[-1] == ";":
        found.pop()
    return " ".join(found)
