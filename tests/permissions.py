"""Whether the permissions of the disk bind this process. They do not bind root, unless its rights are taken from it."""

from __future__ import annotations

import os
import re
from pathlib import Path

_DAC_OVERRIDE = 1 << 1
WHY_NOT = "root may do what the permissions forbid; tests/test_permissions.py runs it without root's rights"


def bind() -> bool:
    if os.geteuid() != 0:
        return True
    status = Path("/proc/self/status")
    held = re.search(r"^CapEff:\s*(\w+)$", status.read_text(), re.MULTILINE) if status.exists() else None
    return held is not None and not int(held[1], 16) & _DAC_OVERRIDE
