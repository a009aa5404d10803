"""Every finding there is: a stable code, how bad it is, what it means, what to do. Scripts key on the codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wizard.secrets import mask

Severity = Literal["error", "warning", "info"]
_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Kind:
    severity: Severity
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    severity: Severity
    message: str
    evidence: str
    meaning: str
    remedy: str

    def as_dict(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("code", "severity", "message", "evidence", "meaning", "remedy")}


def finding(code: str, message: str, evidence: str) -> Finding:
    kind = CATALOGUE[code]
    return Finding(code, kind.severity, mask(message), mask(evidence), kind.meaning, kind.remedy)


def worst_first(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda f: (_ORDER[f.severity], f.code, f.evidence)))


CATALOGUE: dict[str, Kind] = {
    "CHECKPOINT_ABSENT": Kind(
        "error",
        "There is no checkpoint: Spark starts at batch 0 under a new query id and reads from startingOffsets.",
        "If it was deleted by mistake, restore it; else empty the output too and reset.",
    ),
    "NOT_A_CHECKPOINT": Kind(
        "error",
        "The directory holds none of metadata, offsets, commits, sources, state.",
        "Give the directory that was passed as checkpointLocation.",
    ),
    "BARE_LOG": Kind(
        "warning",
        "The directory is a single log of a checkpoint or of a file sink, not a whole checkpoint.",
        "Give the directory above it to see the checkpoint as a whole.",
    ),
    "UNLISTED": Kind(
        "error",
        "A directory could not be listed, so what it holds is unknown.",
        "Grant read access and diagnose again.",
    ),
    "METADATA_MISSING": Kind(
        "error",
        "The query id is lost. Spark 4.2 and later refuse to start; earlier ones silently take a new id, and a Delta sink "
        "that knows batches by the old one writes them again.",
        "Restore `metadata` (the id is in old driver logs and in the sink's transaction ids); then resume.",
    ),
    "METADATA_UNREADABLE": Kind(
        "error", "`metadata` cannot be parsed: start() fails before any batch.", "Restore the file; then resume."
    ),
    "FENCED": Kind(
        "warning",
        "A walk put a fence in place of `metadata`, so that nobody can start the job in the middle of it.",
        "Finish that walk: runbook continue RUN, or runbook undo RUN.",
    ),
    "OFFSETS_UNREADABLE": Kind(
        "error",
        "Spark parses the last two offsets files at start and fails on this one.",
        "Restore the file from a copy, or replay to an earlier batch.",
    ),
    "OLD_ENTRY_UNREADABLE": Kind(
        "info",
        "An older log entry is damaged. Spark does not read it at start; a replay to it would.",
        "None, unless a replay needs that batch.",
    ),
    "OFFSETS_GAP": Kind(
        "error",
        "Spark needs the last two offsets files; the second last is not there.",
        "Restore the file; then resume. Under async progress tracking, start with that option on.",
    ),
    "OFFSETS_HOLES": Kind(
        "info",
        "Older offsets are missing between others. Spark does not look at them; a replay cannot go back across them.",
        "None.",
    ),
    "COMMIT_UNREADABLE": Kind(
        "error", "Spark parses the latest commit at start and fails on this one.", "Restore the file; then resume."
    ),
    "COMMITS_BEHIND": Kind(
        "error",
        "More than one batch is planned and not committed. Spark runs only the last one again: if the others did not reach the "
        "sink, their rows are lost without an error.",
        "Replay to the last committed batch, which runs all of them again.",
    ),
    "COMMITS_AHEAD": Kind(
        "error",
        "A commit is there for a batch that is not planned: offsets were removed and commits were not. Spark runs one batch, "
        "then fails with CONCURRENT_STREAM_LOG_UPDATE.",
        "Restore the offsets, or take the commits back to the same batch (replay).",
    ),
    "COMMITS_WITHOUT_OFFSETS": Kind(
        "error",
        "Commits are there and no offsets: the checkpoint was half deleted. Spark refuses to start.",
        "Restore offsets/, or finish the delete and reset.",
    ),
    "HALF_DELETED": Kind(
        "error",
        "Offsets and commits are gone but something of the checkpoint is left. Spark 4.1 and later refuse to start; earlier ones "
        "run on over the old state.",
        "Restore the rest, or finish the delete (reset).",
    ),
    "START_PINNED": Kind(
        "warning",
        "The source still remembers where it first began: startingOffsets has no effect while that file exists.",
        "Delete the whole checkpoint directory (reset), not parts of it.",
    ),
    "BATCH_IN_FLIGHT": Kind(
        "info",
        "The batch was planned and not committed: it runs again with the same offsets and the same id.",
        "None where the sink is idempotent; else deal with what it already wrote first.",
    ),
    "STATE_BROKEN": Kind(
        "error",
        "A file that the next batch must load is gone: CANNOT_LOAD_STATE_STORE.",
        "Replay to a batch whose state is whole, else reset.",
    ),
    "STATE_ABSENT": Kind(
        "warning",
        "The watermark has moved, and no state is there. If the job keeps state, it is lost and Spark fails: 4.2 with "
        "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY, earlier ones on the first state file that does not exist.",
        "Restore state/, or reset; a job that has a watermark and keeps no state can be started as it is.",
    ),
    "STATE_SCHEMA_GONE": Kind(
        "error",
        "The operator's metadata names its schema files by absolute path, and they are not there: the checkpoint was moved or "
        "copied. transformWithState fails at start: File … does not exist.",
        "Move it back; or write the new place into stateSchemaFilePaths of every state/*/_metadata/v2/* while the job is stopped.",
    ),
    "STATE_SCHEMA_MOVED": Kind(
        "warning",
        "The operator's metadata names its schema files by absolute path, and they are not there: the checkpoint was moved or "
        "copied. The job goes on, and makes a directory anew at the old place.",
        "Move it back; or write the new place into stateSchemaFilePaths of every state/*/_metadata/v2/* while the job is stopped.",
    ),
    "STATE_STALE": Kind(
        "warning",
        "State files are there for batches after the last planned one: a rollback left them. They are trusted at load and can "
        "corrupt results without an error.",
        "Remove the state versions above the last batch (replay does).",
    ),
    "STATE_FOREIGN": Kind(
        "warning",
        "Files that are not Spark's lie in a state directory; they break its maintenance.",
        "Move them out of the checkpoint.",
    ),
    "OPERATOR_METADATA_UNREADABLE": Kind(
        "error",
        "The record of a stateful operator cannot be parsed; Spark 4 checks it at start.",
        "Restore the file; then resume.",
    ),
    "SOURCE_LOG_BROKEN": Kind(
        "error",
        "The source's own log has a hole in what Spark must read at start.",
        "Restore the file, or replay to a batch before it, else reset.",
    ),
    "SOURCES_DIFFER": Kind(
        "error",
        "The number of sources differs between batches, or from the registry. Spark refuses: 'There are [n] sources in the "
        "checkpoint offsets and now there are [m]'.",
        "Revert the code, or reset; a source that was taken away is not rebuilt, and the reset asks for its rows by name.",
    ),
    "CONSUMER_AHEAD": Kind(
        "warning",
        "A job that reads this output has read files or commits that are gone from it, or from its log. Whatever is written "
        "anew of their rows, that job reads a second time.",
        "Stop that job before this one is started, then reset or replay it; resume, replay and reset offer it.",
    ),
    "INPUT_GONE": Kind(
        "error",
        "Input files of a batch that must run are gone. Spark skips them with a warning and commits the batch: their rows are lost.",
        "Restore the files before the start, or accept the loss in writing.",
    ),
    "INPUT_TOUCHED": Kind(
        "error",
        "Input files that were read have a newer time than when they were read, as after a copy without times. Spark forgets a file once its entry is a week (maxFileAge) older than the newest, and reads a younger one with that name again: its rows are there twice, without an error.",
        "Give the files the times that sources/ID names (touch -d @SECONDS), or reset.",
    ),
    "SOURCE_LOST": Kind(
        "error",
        "Records that the next batch must read are gone from the source: it kept them for less time than the job was down.",
        "Find the rows elsewhere, or accept the loss in writing (resume asks).",
    ),
    "SOURCE_REWRITTEN": Kind(
        "error",
        "The table that is read as a stream was emptied, rewritten or created anew, or its log no longer reaches back to "
        "where the stream stands: Spark stops with an error at that commit.",
        "Reset this job: its output is then made from the table as it is now.",
    ),
    "TOPIC_RECREATED": Kind(
        "error",
        "The topic was deleted and created again: the offsets in the checkpoint count records that are no longer there.",
        "Keep the output as it is and begin a new one, or accept the loss of the old records in writing (reset asks).",
    ),
    "ORPHAN_CRC": Kind(
        "error",
        "A checksum file without its main file blocks Spark's next write of that batch: 'Multiple streaming queries are "
        "concurrently using …'.",
        "Remove the named .crc file.",
    ),
    "TEMPORARY_FILES": Kind(
        "info",
        "A killed run left temporary files. Spark never removes them.",
        "None, but a fresh start (4.1 and later) fails on one in an otherwise empty log.",
    ),
    "FOREIGN_FILES": Kind("info", "Files that are not Spark's lie in the checkpoint.", "None; Spark ignores them."),
    "NEWER_FORMAT": Kind(
        "error",
        "A file was written by a newer Spark than any this tool knows; it is not guessed at.",
        "Use a newer runbook, and a Spark that wrote this version.",
    ),
    "ASYNC_PROGRESS": Kind(
        "info",
        "Only some batches are in the logs: async progress tracking. A restart without that option fails.",
        "Start with asyncProgressTrackingEnabled=true; replay is not possible.",
    ),
    "CONTINUOUS_MODE": Kind(
        "info",
        "Continuous processing: one entry an epoch; it restarts from the last commit.",
        "Start in continuous mode.",
    ),
    "REPARTITIONED": Kind(
        "info",
        "The number of state partitions changed between two batches: an offline repartition. A replay cannot go back across it.",
        "None.",
    ),
    "REPARTITION_UNFINISHED": Kind(
        "error",
        "An offline repartition of the state died midway: Spark 4.2 and later refuse to start "
        "(STREAMING_UNFINISHED_REPARTITION_DETECTED), earlier ones fail on the partitions that are not there.",
        "Run the repartition again to its end; then resume. A replay cannot go back across it.",
    ),
    "SINK_UNREADABLE": Kind(
        "error",
        "The sink could not be looked at, so nothing is known of it.",
        "Grant access, or repair the table, and diagnose again.",
    ),
    "SPARK_TOO_OLD": Kind(
        "error",
        "The checkpoint was written by a newer Spark than the one the registry names, in a version of its logs that release "
        "cannot read: it fails at start.",
        "Start it with the Spark that wrote it, or a newer one, and name that in the registry.",
    ),
    "SINK_UNKNOWN_KIND": Kind(
        "warning",
        "There is no reader for this kind of sink: whether it absorbs a batch twice is not known.",
        "Declare `idempotent` in the registry, or check the sink by hand.",
    ),
    "SINK_ABSENT": Kind(
        "error",
        "The checkpoint has committed batches and the sink is not there: those rows are gone.",
        "Restore the output, or reset.",
    ),
    "SINK_LOG_UNREADABLE": Kind(
        "error", "The file sink's log cannot be parsed: readers of the output fail.", "Restore the file, or reset both."
    ),
    "SINK_LOG_HOLE": Kind(
        "error",
        "The file sink's log has a hole: readers fail now, the job at its next compaction.",
        "Restore the file, or reset both.",
    ),
    "SINK_LOG_ABSENT": Kind(
        "error",
        "Data files are there and the sink's log is not: Spark's readers will see only what is written from now on.",
        "Restore _spark_metadata, or reset both.",
    ),
    "SINK_FILES_GONE": Kind(
        "error",
        "The sink's log lists files that are not there: those rows are lost, and readers fail.",
        "Restore the files, or replay from before them, else reset.",
    ),
    "SINK_ORPHANS": Kind(
        "warning",
        "Data files that the sink's log does not list: a killed batch, or a checkpoint that was reset over them. Spark ignores "
        "them; every other reader counts their rows.",
        "Quarantine them once the job is stopped.",
    ),
    "SINK_MOVED": Kind(
        "error",
        "Spark finds the output's files by the absolute paths in its log, so it cannot read this output.",
        "Move it back, or reset to a new path.",
    ),
    "SINK_AHEAD": Kind(
        "error",
        "The sink remembers a later batch than the checkpoint plans: every new batch up to that number is skipped without an error.",
        "Do not resume. Reset output and checkpoint together, or take the sink back to the checkpoint's batch (replay).",
    ),
    "SINK_OLDER": Kind(
        "error",
        "Another query wrote into this output, or this one before its checkpoint was taken back: its log lists files from before "
        "this checkpoint planned their batch, or its rows name that query. Batches with the numbers in a log were skipped "
        "without an error, others may be there twice.",
        "Reset output and checkpoint together. Where only the clocks of two machines differ, compare the rows.",
    ),
    "SINK_EMPTIED": Kind(
        "error",
        "The table remembers the batches of this query and holds no rows: they were deleted under a live checkpoint, and a "
        "resume does not bring them back.",
        "Take the table back to the version before (RESTORE), or reset.",
    ),
    "SINK_BEHIND": Kind(
        "error",
        "The checkpoint has committed batches that the sink does not hold: the output was emptied or restored under a live checkpoint.",
        "Replay to the sink's last batch, or reset.",
    ),
    "SINK_ANOTHER_QUERY": Kind(
        "warning",
        "The table holds batches of other query ids and none of this one: the checkpoint was reset over a full table, or the "
        "writer uses an id of its own.",
        "If the checkpoint was reset, empty the table and reset both; else name the id the job writes under.",
    ),
    "LOG_OF_ANOTHER_QUERY": Kind(
        "warning",
        "The failure in the log is that of a query with another id, so it says nothing of this checkpoint.",
        "Give the log of the job's own driver; or the checkpoint is not the one that query ran on.",
    ),
    "LOG_SIGNATURE": Kind("warning", "The driver log shows a failure that is known.", "See `runbook explain`."),
}
