"""What can go wrong, and the exit code each ends with.

RunbookError              1  an error of the tool's own
├── BadInput              2  usage or bad input: names the file, the line and the fix
├── Stopped               3  stopped or declined before any change
├── VerificationFailed    4  a verification failed after a change; the way back is printed
├── WorldMoved            5  the world moved since the plan
├── Locked                6  locked by another run
├── JournalUnwritable     7  the journal cannot be written; nothing was done
└── InDoubt               8  an earlier run must be picked up first

Every message is one line for an operator at three in the morning: what is wrong, where, what to do.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    ERROR = 1
    BAD_INPUT = 2
    STOPPED = 3
    VERIFICATION_FAILED = 4
    WORLD_MOVED = 5
    LOCKED = 6
    JOURNAL_UNWRITABLE = 7
    IN_DOUBT = 8
    INTERRUPTED = 130


class RunbookError(Exception):
    exit_code = ExitCode.ERROR


class BadInput(RunbookError):
    exit_code = ExitCode.BAD_INPUT


class Stopped(RunbookError):
    exit_code = ExitCode.STOPPED


class VerificationFailed(RunbookError):
    exit_code = ExitCode.VERIFICATION_FAILED


class WorldMoved(RunbookError):
    exit_code = ExitCode.WORLD_MOVED


class Locked(RunbookError):
    exit_code = ExitCode.LOCKED


class JournalUnwritable(RunbookError):
    exit_code = ExitCode.JOURNAL_UNWRITABLE


class InDoubt(RunbookError):
    exit_code = ExitCode.IN_DOUBT
