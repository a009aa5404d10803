"""The process that looks for the UI: takes a function and its arguments from stdin, gives back what it found.

    python -m wizard.tui.looking

Both ways are pickles between two processes of one program. It ends with the UI, whatever ended that: its stdin closes.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from wizard.errors import RunbookError
from wizard.secrets import mask


def main() -> None:
    os.nice(5)  # a look gives way to a key press
    import jsonschema  # noqa: F401  what the first look needs, loaded while the UI loads its own

    import wizard.jobs.registry  # noqa: F401

    wanted = sys.stdin.buffer
    found = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints must not come between the answers
    serve(wanted, found)


def serve(wanted: BinaryIO, found: BinaryIO) -> None:
    from wizard.jobs.model import Registry

    registry: Registry | None = None
    while True:
        try:
            new, function, args = pickle.load(wanted)
        except EOFError:
            return
        registry = new or registry
        answer = _look(function, [registry if each is Registry else each for each in args])
        found.write(answer)
        found.flush()


def _look(function: Callable[..., Any], args: list[Any]) -> bytes:
    try:
        seen = function(*args)
    except RunbookError as error:
        seen = type(error)(mask(str(error)))
    except OSError as error:
        seen = RunbookError(mask(str(error)))
    except Exception as error:  # noqa: BLE001  shown on the screen; the next look must still come
        seen = RunbookError(mask(f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]))
    return pickle.dumps(seen)


if __name__ == "__main__":
    main()
