"""What Spark, Delta, Kafka and Iceberg write when a streaming query is in trouble, and which path each calls for.

Rows are those of FAILURES.md. `proved` says that the text was recorded from real Spark (fixtures/logs); the others were
read in the sources of the connector. Rows 19 and 20 leave no text at all and are found by looking at the offsets instead.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict

Severity = Literal["error", "warning", "info"]
Path = Literal["resume", "replay", "backfill", "reset", "none"]

# An error class opens a message; the same words in the middle of a row of data or of a sentence do not.
_CODE = r"(?:^\W{0,8}|[:.\-] )\["
# A message follows the name of its exception, or `terminated with exception`, or starts the line when only it was pasted.
_TEXT = r"(?:^\W{0,8}|[Ee]xception: |Error: |NotCompatible: )(?:assertion failed: )?"
# A logged message follows the logger's name and its separator.
_LOGGED = r"(?:^\s*|[:\-\]|] +)"


@dataclass(frozen=True)
class Signature:
    """`needles` are literals, one of which every matching line holds; `patterns` then decide."""

    code: str
    title: str
    severity: Severity
    needles: tuple[str, ...]
    patterns: tuple[str, ...]
    meaning: str
    path: Path
    remedy: str
    row: int | None = None
    since: str | None = None
    proved: bool = False
    generic: bool = False  # yields to any other signature in the same chain of causes

    def as_dict(self) -> dict[str, Any]:
        hidden = ("needles", "patterns")
        return {name: value for name, value in asdict(self).items() if name not in hidden}


class _Where(TypedDict):
    needles: tuple[str, ...]
    patterns: tuple[str, ...]


def _codes(*names: str) -> _Where:
    """A bracketed error class, with any subclass: `[NAME]`, `[NAME.SUB]`."""
    return {
        "needles": tuple(f"[{name}" for name in names),
        "patterns": tuple(_CODE + name.replace(".", r"\.") + r"(?:\.[A-Z_]+)?\]" for name in names),
    }


def _texts(*pairs: tuple[str, str], after: str = _TEXT) -> _Where:
    """Pairs of (literal, pattern from the start of the message)."""
    return {"needles": tuple(needle for needle, _ in pairs), "patterns": tuple(after + pattern for _, pattern in pairs)}


def _both(left: _Where, right: _Where) -> _Where:
    return {"needles": left["needles"] + right["needles"], "patterns": left["patterns"] + right["patterns"]}


SIGNATURES: tuple[Signature, ...] = (
    Signature(
        "SINK_LOG_SKIPS_BATCH",
        "the file sink drops batches it has seen before",
        "error",
        **_texts(("Skipping already committed", r"Skipping already committed batch (?P<batch>\d+)\s*$"), after=_LOGGED),
        meaning="The checkpoint was deleted or rolled back and `_spark_metadata` of the output was kept: every batch whose "
        "number the sink log already holds is thrown away without an error. One such line right after a restart, for the batch "
        "that is run again, is normal.",
        path="reset",
        remedy="Stop the job now; reset checkpoint and sink log together.",
        row=1,
        proved=True,
    ),
    Signature(
        "DELTA_TXN_SKIPS_BATCH",
        "foreachBatch writes to Delta are ignored",
        "error",
        **_texts(
            ("Already completed batch", r"Already completed batch (?P<batch>\d+) .*This will be skipped"), after=_LOGGED
        ),
        meaning="The checkpoint started again at batch 0 under the same txnAppId: Delta takes each write for a repetition.",
        path="reset",
        remedy="Stop the job; reset with a new txnAppId.",
        row=2,
    ),
    Signature(
        "DELTA_SKIPS_EPOCH",
        "the Delta sink drops epochs it has seen before",
        "error",
        **_texts(
            (
                "Skipping already complete epoch",
                r"Skipping already complete epoch (?P<batch>\d+), in query (?P<query>[0-9a-f-]{36})",
            ),
            after=_LOGGED,
        ),
        meaning="The checkpoint was rolled back under the same query id while the table's `txn` kept the later batch; RESTORE "
        "does not lower it. Batches up to that number are lost without an error.",
        path="replay",
        remedy="Stop the job; replay with the table's txn lowered, or under a new query id.",
        row=3,
    ),
    Signature(
        "DELTA_SOURCE_CHANGED",
        "the Delta table upstream was truncated or rewritten",
        "error",
        **_codes("DELTA_SOURCE_IGNORE_DELETE", "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        meaning="A commit upstream removed or rewrote rows this stream had read, often because the job upstream was reset.",
        path="reset",
        remedy="Reset this job too. ignoreDeletes or skipChangeCommits only as a waiver on record.",
        row=4,
    ),
    Signature(
        "DELTA_SOURCE_RECREATED",
        "the Delta table upstream is another table now",
        "error",
        **_codes("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"),
        meaning="The source table was dropped and created again: its id is not the one in the checkpoint's offsets.",
        path="reset",
        remedy="Reset; if the output must stay, a new checkpoint and a backfill of the gap.",
        row=5,
    ),
    Signature(
        "DELTA_LOG_EXPIRED",
        "the Delta log no longer reaches back to the checkpoint",
        "error",
        **_codes("DELTA_MISSING_FILES_UNEXPECTED_VERSION", "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"),
        meaning="Log retention upstream removed versions this stream had not read yet.",
        path="backfill",
        remedy="New checkpoint from the oldest version left, and backfill the versions that are gone.",
        row=6,
    ),
    Signature(
        "DELTA_SCHEMA_CHANGED",
        "the schema of the Delta source changed",
        "error",
        **_codes(
            "DELTA_SCHEMA_CHANGED", "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS", "DELTA_SCHEMA_CHANGED_WITH_VERSION"
        ),
        meaning="The stream stops once so that the plan can be made again with the new schema.",
        path="resume",
        remedy="Resume once. If it stops again with the same error, reset.",
        row=7,
    ),
    Signature(
        "DELTA_CONCURRENT_TRANSACTION",
        "two runs write to Delta from one checkpoint",
        "error",
        **_both(
            _codes("DELTA_CONCURRENT_TRANSACTION"),
            _texts(
                (
                    "ConcurrentTransactionException",
                    r"(?:io\.delta\.exceptions\.|org\.apache\.spark\.sql\.delta\.)"
                    r"ConcurrentTransactionException: ",
                ),
                after=r"(?:^\W{0,8}|Caused by: |: )",
            ),
        ),
        meaning="Another run with the same query id committed in between.",
        path="resume",
        remedy="Find and stop the other run, then resume.",
        row=8,
    ),
    Signature(
        "ORPHAN_CRC",
        "a left-over .crc file blocks the next write",
        "error",
        **_texts(
            (
                "Rename destination",
                r"Rename destination (?P<file>\S*/\.(?P<batch>\d+)(?:\.compact)?\.crc) already exists",
            )
        ),
        meaning="`N` was deleted by hand and `.N.crc` beside it was not. Spark reports it as two concurrent queries; there are none.",
        path="resume",
        remedy="Stop the job, delete the .crc file that is named, resume.",
        row=9,
        proved=True,
    ),
    Signature(
        "CONCURRENT_WRITERS",
        "two queries use one checkpoint",
        "error",
        **_both(
            _codes("CONCURRENT_STREAM_LOG_UPDATE"),
            _texts(
                (
                    "Multiple streaming queries are concurrently",
                    r"Multiple streaming queries are concurrently using (?P<file>\S+)",
                ),
                (
                    "Concurrent update to the",
                    r"Concurrent update to the (?:commit )?log\. Multiple streaming jobs detected for (?P<batch>\d+)",
                ),
            ),
        ),
        meaning="A second run wrote the same entry; or a rollback deleted `offsets/N` and left `commits/N` behind.",
        path="resume",
        remedy="Stop all but one run, then resume. If there never was a second run, commits are ahead of offsets: "
        "take both back to the same batch (replay).",
        row=9,
        proved=True,
    ),
    Signature(
        "SINK_RACE",
        "two queries write to one file-sink path",
        "error",
        **_texts(("Race while writing batch", r"Race while writing batch (?P<batch>\d+)")),
        meaning="Another query, with another checkpoint, wrote this batch number to the sink log first; this batch was not written.",
        path="resume",
        remedy="Give each query its own output path: stop the other one, then resume.",
        row=10,
        proved=True,
    ),
    Signature(
        "SOURCE_COUNT_CHANGED",
        "the number of sources changed",
        "error",
        **_texts(
            (
                "sources in the checkpoint offsets",
                r"There are \[\d+\] sources in the checkpoint offsets and now there are "
                r"\[\d+\] sources requested by the query",
            )
        ),
        meaning="A source was added to or removed from the query since the checkpoint was written.",
        path="resume",
        remedy="Put the old code back and resume; to keep the new code, reset.",
        row=11,
        proved=True,
    ),
    Signature(
        "BATCH_ENTRY_MISSING",
        "an entry of offsets/ or sources/ is gone",
        "error",
        **_texts(
            ("doesn't exist", r"batch (?P<batch>\d+) doesn't exist"),
            ("doesn't exist (latestId", r"(?P<file>\S*/sources/\S+) doesn't exist \(latestId: \d+"),
        ),
        meaning="Spark needs the last two entries of `offsets/` and every entry of a source's log since its last compaction. It is "
        "also what a restart without async progress tracking says after runs that had it.",
        path="resume",
        remedy="Restore the entry and resume, or set asyncProgressTrackingEnabled as before; else replay to an older batch.",
        row=12,
        proved=True,
    ),
    Signature(
        "METADATA_MISSING",
        "the checkpoint's metadata file is gone",
        "error",
        **_codes("STREAMING_CHECKPOINT_MISSING_METADATA_FILE"),
        meaning="`metadata`, which holds the query id, was lost while offsets and commits were kept.",
        path="resume",
        remedy="Restore the file with the same query id, then resume. Never let Spark mint a new id: sinks would duplicate.",
        row=13,
        since="4.2",
        proved=True,
    ),
    Signature(
        "METADATA_FENCED",
        "metadata has no query id",
        "error",
        **_texts(("No usable value for id", r"No usable value for id\b")),
        meaning="`metadata` holds JSON without an `id`: runbook's own fence while a walk is unfinished, or a file edited by hand.",
        path="none",
        remedy="If it holds `runbook_lock`, finish that run with `runbook continue` or `runbook undo`; otherwise restore the "
        "file, then resume.",
        proved=True,
    ),
    Signature(
        "METADATA_UNREADABLE",
        "the checkpoint's metadata file cannot be read",
        "error",
        **_texts(
            ("Error reading stream metadata from", r"Error reading stream metadata from (?P<file>\S+)"), after=_LOGGED
        ),
        meaning="`metadata` is empty, cut short or not JSON.",
        path="resume",
        remedy="Restore `metadata` with the same query id, then resume.",
        proved=True,
    ),
    Signature(
        "CHECKPOINT_NOT_EMPTY",
        "a checkpoint was half deleted",
        "error",
        **_codes("STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"),
        meaning="There are no offsets, so Spark starts at batch 0, yet state or commits, or only a temporary file, are still there.",
        path="reset",
        remedy="Finish the delete (or restore what was deleted): remove the directories whole, sink log included.",
        row=14,
        since="4.1",
        proved=True,
    ),
    Signature(
        "COMMITS_WITHOUT_OFFSETS",
        "a bare assertion: most often commits without offsets",
        "error",
        **_texts(("assertion failed", r"(?<=: )assertion failed(?: SQLSTATE: \w+)?\s*$"), after=""),
        meaning="Spark 4.2 says only `assertion failed` when `commits/` has entries and `offsets/` has none.",
        path="reset",
        remedy="Look at the checkpoint with `runbook diagnose`; restore offsets, or finish the delete and reset.",
        row=14,
        proved=True,
        generic=True,
    ),
    Signature(
        "STATE_FILE_MISSING",
        "a state file is gone",
        "error",
        **_both(
            _codes(
                "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS",
                "CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE",
                "CANNOT_LOAD_STATE_STORE.CANNOT_READ_MISSING_SNAPSHOT_FILE",
                "CANNOT_LOAD_STATE_STORE.CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT",
            ),
            _texts(("/state/", r"(?:File )?(?P<file>\S*/state/\d+/\d+/\S+) does not exist")),
        ),
        meaning="A delta, snapshot, zip, changelog or SST that the batch must load is not there. It is also what a hand-edited "
        "`spark.sql.shuffle.partitions` in `offsets/` ends in.",
        path="replay",
        remedy="Restore the file and resume; else replay to a batch whose state is whole in every partition; else reset.",
        row=15,
        proved=True,
    ),
    Signature(
        "STATE_DIRECTORY_MISSING",
        "the state directory is gone",
        "error",
        **_codes("STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY"),
        meaning="`state/` is empty or missing under offsets that need it, or a stateful operator was added to a stateless query.",
        path="reset",
        remedy="Restore `state/` and resume, or put the old code back; else reset.",
        row=15,
        since="4.2",
        proved=True,
    ),
    Signature(
        "STATE_FILE_CUT",
        "a state file is cut short",
        "error",
        **_both(
            _texts(("Stream ended prematurely", r"Stream ended prematurely\b")),
            _codes(
                "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_KEY_SIZE",
                "CANNOT_LOAD_STATE_STORE.CANNOT_READ_SNAPSHOT_FILE_KEY_SIZE",
                "CANNOT_LOAD_STATE_STORE.CANNOT_READ_SNAPSHOT_FILE_VALUE_SIZE",
                "CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE",
            ),
        ),
        meaning="A state file ends in the middle: a half-finished copy or write.",
        path="replay",
        remedy="Restore the file and resume; else replay to a batch before it; else reset.",
        row=15,
        proved=True,
    ),
    Signature(
        "STATE_UNLOADABLE",
        "the state cannot be loaded",
        "error",
        **_codes("CANNOT_LOAD_STATE_STORE"),
        meaning="The state store failed to load; the cause under this line says why.",
        path="replay",
        remedy="Act on the cause below it; else replay to a batch whose state is whole.",
        row=15,
        proved=True,
        generic=True,
    ),
    Signature(
        "STATE_SCHEMA_CHANGED",
        "the schema of the state changed",
        "error",
        **_both(
            _codes(
                "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
                "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
                "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
                "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
                "STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE",
                "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE",
            ),
            _texts(
                ("Provided schema doesn't match", r"Provided schema doesn't match to the schema for existing state")
            ),
        ),
        meaning="The keys or aggregates of a stateful operator changed; what is in the state cannot be read as the new type.",
        path="resume",
        remedy="Put the old code back and resume; to keep the new code, reset. Never switch stateSchemaCheck off.",
        row=16,
        proved=True,
    ),
    Signature(
        "STATEFUL_OPERATOR_CHANGED",
        "a stateful operator was added, removed or replaced",
        "error",
        **_codes("STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"),
        meaning="The operators in the state's metadata are not those of the query.",
        path="resume",
        remedy="Put the old code back and resume; to keep the new code, reset.",
        row=17,
        since="4.0",
        proved=True,
    ),
    Signature(
        "KAFKA_TOPIC_RECREATED",
        "Kafka partitions this stream was reading are gone",
        "error",
        **_both(
            _codes(
                "KAFKA_DATA_LOSS.PARTITIONS_DELETED",
                "KAFKA_DATA_LOSS.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT",
                "KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
            ),
            _texts((" are gone. ", r"(?:Hash)?Set\(.*\) are gone\. ")),
        ),
        meaning="The topic was deleted or created again with fewer partitions.",
        path="reset",
        remedy="If the topic is a new one, reset; if it was deleted by mistake, restore it. Backfill what it held from elsewhere.",
        row=18,
    ),
    Signature(
        "KAFKA_DATA_LOSS",
        "Kafka no longer has the offsets in the checkpoint",
        "error",
        **_both(
            _codes("KAFKA_DATA_LOSS"),
            _texts(
                (
                    "offset was changed from",
                    r"Partition \S+ offset was changed from \d+ to \d+, some data may have been missed",
                ),
                # The words of 4.2, seen with a real broker: they carry no error class.
                (
                    "not available in Kafka any more",
                    r"Some data may have been lost because they are not available in Kafka any more",
                ),
                ("Cannot fetch offset", r"Cannot fetch offset \d+ \(GroupId: "),
                (
                    "OffsetOutOfRangeException",
                    r"(?:Caused by: )?org\.apache\.kafka\.clients\.consumer\.OffsetOutOfRangeException: ",
                ),
            ),
        ),
        meaning="Records aged out before they were read, or the topic was recreated and is shorter than the checkpoint's offset.",
        path="backfill",
        remedy="Backfill the gap from elsewhere. failOnDataLoss=false only as a waiver on record.",
        row=18,
    ),
    Signature(
        "KAFKA_DATA_LOSS_TOLERATED",
        "Kafka records were lost and failOnDataLoss=false let it pass",
        "error",
        **_texts(
            (
                "was changed from",
                r"WARN .*: Partition \S+ offset was changed from \d+ to \d+, some data may have been missed",
            ),
            ("Some data may be lost. ", r".*Some data may be lost\. Recovering from the earliest offset: \d+"),
            ('option "failOnDataLoss" to "true"', r'.*option "failOnDataLoss" to "true"'),
            after="",
        ),
        meaning="Offsets in the checkpoint were not in Kafka any more; the stream jumped ahead and went on without an error.",
        path="backfill",
        remedy="Backfill the gap from elsewhere; set failOnDataLoss=true so that the next one stops the job.",
        row=18,
    ),
    Signature(
        "PINNED_CONF_CHANGED",
        "a conf was changed that the checkpoint pins",
        "warning",
        **_texts(
            ("Updating the value of conf", r"Updating the value of conf '[\w.]+' in current session from "),
            after=_LOGGED,
        ),
        meaning="The value stored in the checkpoint wins; the new one has no effect.",
        path="none",
        remedy="Nothing to repair. To change the value for good, reset.",
        row=21,
        proved=True,
    ),
    Signature(
        "SINK_LOG_BROKEN",
        "entries of the file sink's log are gone",
        "error",
        **_both(
            _codes("BATCH_METADATA_NOT_FOUND"),
            _texts(
                ("Unable to find batch", r"Unable to find batch (?P<file>\S*/_spark_metadata/(?P<batch>\d+)\S*)"),
                ("when compacting batch", r"(?P<file>\S+) doesn't exist when compacting batch (?P<batch>\d+)"),
                ("doesn't exist (latestId", r"(?P<file>\S*/_spark_metadata/\S+) doesn't exist \(latestId: \d+"),
            ),
        ),
        meaning="`_spark_metadata` was deleted or the output path changed under a live checkpoint; noticed only when the log is "
        "compacted or read. What was written before is no longer part of the output.",
        path="reset",
        remedy="Restore the log and resume; else reset checkpoint and output together.",
        row=22,
        proved=True,
    ),
    Signature(
        "CHECKPOINT_FILE_CUT",
        "a file of the checkpoint is cut short or not what it should be",
        "error",
        **_both(
            _codes("MALFORMED_LOG_FILE"),
            _texts(
                ("Incomplete log file", r"(?:Failed to read log file (?P<file>\S+?)\. )?Incomplete log file"),
                ("Log file was malformed", r".*Log file was malformed: failed to read correct log version from "),
                (
                    "WatermarkTracker.currentWatermark()",
                    r'Cannot invoke "\S*WatermarkTracker\.currentWatermark\(\)" because',
                ),
            ),
        ),
        meaning="The newest entry of `offsets/` or `commits/` was not written to its end, or was edited.",
        path="resume",
        remedy="Restore the file and resume; else replay to the batch before it. Never write a commit by hand.",
        row=23,
        proved=True,
    ),
    Signature(
        "JSON_CUT",
        "Spark stopped in the middle of a JSON text",
        "error",
        **_texts(
            ("Unexpected end-of-input", r"Unexpected end-of-input\b"),
            ("No content to map due to", r"No content to map due to end-of-input"),
            ("next on empty iterator", r"next on empty iterator\b"),
        ),
        meaning="Most often the newest entry of `offsets/`, or `metadata`, was cut short.",
        path="resume",
        remedy="Run `runbook diagnose` to see which file; restore it and resume, or replay to the batch before it.",
        row=23,
        proved=True,
        generic=True,
    ),
    Signature(
        "LOG_VERSION_UNSUPPORTED",
        "the checkpoint was written by another version of Spark",
        "error",
        **_both(
            _codes("INVALID_LOG_VERSION"),
            _texts(("UnsupportedLogVersion: ", r"UnsupportedLogVersion: maximum supported log version")),
        ),
        meaning="A log file has a format version this Spark cannot read.",
        path="resume",
        remedy="Run the job on the Spark that wrote the checkpoint (or newer), or with its checkpointFormatVersion; resume.",
        proved=True,
    ),
    Signature(
        "STATE_CHECKSUM_MISMATCH",
        "a checkpoint file fails its checksum",
        "error",
        **_codes("CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED", "STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED"),
        meaning="The file is corrupt, or was edited by hand.",
        path="resume",
        remedy="Restore the file and resume; else replay to a batch before it.",
        row=24,
        since="4.1",
        proved=True,
    ),
    Signature(
        "UNFINISHED_REPARTITION",
        "an offline state repartition died midway",
        "error",
        **_codes("STREAMING_UNFINISHED_REPARTITION_DETECTED"),
        meaning="The newest batch is a repartition batch without a commit.",
        path="resume",
        remedy="Run the repartition again to its end, then resume. Do not roll back across it.",
        row=25,
        since="4.2",
        proved=True,
    ),
    Signature(
        "ICEBERG_SNAPSHOT_EXPIRED",
        "the Iceberg snapshot in the checkpoint is gone",
        "error",
        **_texts(("Cannot load current offset at snapshot", r"Cannot load current offset at snapshot -?\d+")),
        meaning="The source table expired the snapshot this stream stood at.",
        path="reset",
        remedy="Reset, and backfill what the expired snapshots held.",
        row=26,
    ),
    Signature(
        "ALREADY_ACTIVE",
        "the same query is already running",
        "error",
        **_texts(
            (
                "another query with same id is already active",
                r"Cannot start query with id (?P<query>[0-9a-f-]{36}) as another query with same id is already active",
            )
        ),
        meaning="This session (or cluster) has a live run on the same checkpoint.",
        path="none",
        remedy="Leave the live run alone, or stop it and then resume.",
        proved=True,
    ),
    Signature(
        "INPUT_MOVED",
        "the input directory was moved",
        "error",
        **_texts(("Wrong basePath", r"Wrong basePath \S+ for the root path: (?P<file>\S+)")),
        meaning="The source's log holds absolute paths, and a batch that must be run again names files outside the path that is read now.",
        path="resume",
        remedy="Put the files back under the old path and resume; else reset.",
        proved=True,
    ),
    Signature(
        "INPUT_FILE_MISSING",
        "input files were gone when a batch was run",
        "error",
        **_texts(
            (
                "was not found. Was it deleted very recently?",
                r"The directory (?P<file>\S+) was not found\. Was it deleted very recently\?",
            ),
            after=_LOGGED,
        ),
        meaning="Files named in the source's log were skipped without an error; the batch commits without their rows.",
        path="backfill",
        remedy="Restore the files; replay the batch, or backfill from them.",
        proved=True,
    ),
    Signature(
        "COMMITS_BEHIND",
        "batches were skipped: commits end more than one before offsets",
        "error",
        **_texts(
            (
                "Batch completion log latest batch id",
                r"Batch completion log latest batch id is \d+, which is not trailing batchid "
                r"(?P<batch>\d+) by one",
            ),
            after=_LOGGED,
        ),
        meaning="Spark runs only the newest planned batch again; those between it and the newest commit are skipped without an error. "
        "With async progress tracking holes are normal.",
        path="replay",
        remedy="Stop the job; unless it uses async progress tracking, replay to the newest committed batch.",
        proved=True,
    ),
    Signature(
        "STATE_MAINTENANCE_FAILS",
        "a foreign file in a state directory stops its maintenance",
        "warning",
        **_texts(
            ("NumberFormatException: For input string", r'NumberFormatException: For input string: "[^"]*"(?: .*)?$'),
            after=r"(?:^|[\s.:])",
        ),
        meaning="Most often a file whose name is not a number lies in a state partition: snapshots and clean-up stop, the query goes on.",
        path="none",
        remedy="Move the file out of `state/`; nothing else.",
        proved=True,
        generic=True,
    ),
    Signature(
        "OUT_OF_ORDER",
        "offsets committed out of order",
        "info",
        **_texts(("Offsets committed out of order", r"Offsets committed out of order: ")),
        meaning="Only the memory and socket sources say this: a test, not a production job.",
        path="none",
        remedy="Nothing to repair.",
    ),
    Signature(
        "OUT_OF_MEMORY",
        "a driver or executor ran out of memory",
        "error",
        **_texts(
            ("OutOfMemoryError", r"(?:^|[\s:\"])java\.lang\.OutOfMemoryError\b"),
            ("_PROVIDER_OUT_OF_MEMORY]", r"\[CANNOT_LOAD_STATE_STORE\.\w+_STORE_PROVIDER_OUT_OF_MEMORY\]"),
            ("for exceeding", r"Container killed by YARN for exceeding (?:physical )?memory limits"),
            after="",
        ),
        meaning="The process died of memory; the checkpoint is as it was.",
        path="resume",
        remedy="More memory, or smaller batches (maxOffsetsPerTrigger, maxFilesPerTrigger); then resume.",
        generic=True,
    ),
    Signature(
        "DISK_FULL",
        "no space left",
        "error",
        **_texts(("No space left on device", r".*No space left on device"), after=""),
        meaning="A disk is full; a file being written may be cut short.",
        path="resume",
        remedy="Make room, run `runbook diagnose`, then resume.",
        generic=True,
    ),
    Signature(
        "ACCESS_DENIED",
        "access was refused",
        "error",
        **_texts(
            ("AccessDeniedException", r"AccessDeniedException: "),
            ("AccessControlException", r"AccessControlException: "),
            ("AuthorizationException", r"AuthorizationException: "),
            ("SaslAuthenticationException", r"SaslAuthenticationException: "),
            after=r"(?:^|[\s.$])",
        ),
        meaning="Credentials or permissions for the source, the sink or the checkpoint are wrong or expired.",
        path="resume",
        remedy="Renew them, then resume.",
        generic=True,
    ),
    Signature(
        "UNREACHABLE",
        "a host could not be reached",
        "error",
        **_texts(
            ("UnknownHostException", r"UnknownHostException: "),
            ("ConnectException", r"java\.net\.ConnectException: "),
            ("SocketTimeoutException", r"SocketTimeoutException: "),
            ("NoRouteToHostException", r"NoRouteToHostException: "),
            after=r"(?:^|[\s.$])",
        ),
        meaning="Network or service trouble; the checkpoint is as it was.",
        path="resume",
        remedy="Once it answers again, resume.",
        generic=True,
    ),
    Signature(
        "EXECUTOR_LOST",
        "executors were lost",
        "error",
        **_texts(("ExecutorLostFailure (", r".*ExecutorLostFailure \("), after=""),
        meaning="A task failed too often because its executor went away (memory, preemption, node loss).",
        path="resume",
        remedy="See why the executors died; then resume.",
        generic=True,
    ),
    Signature(
        "USER_CODE_FAILED",
        "the job's own code failed",
        "error",
        **_both(
            _codes(
                "FOREACH_BATCH_USER_FUNCTION_ERROR",
                "FOREACH_USER_FUNCTION_ERROR",
                "PYTHON_EXCEPTION",
                "FAILED_EXECUTE_UDF",
            ),
            _texts(
                ("PythonException: ", r"(?:Caused by: |: |^)org\.apache\.spark\.api\.python\.PythonException: "),
                ("Python Proxy", r"An exception was raised by the Python Proxy"),
                after=r"(?:^|.*?)",
            ),
        ),
        meaning="A UDF or foreachBatch function raised; the checkpoint is as it was, and what the function had written stays written.",
        path="resume",
        remedy="Fix the code or the row it fails on, then resume: the batch is run again with the same id.",
        proved=True,
        generic=True,
    ),
)
