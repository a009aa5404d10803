"""Root reads and writes what permissions forbid. Where root runs the tests, those of permissions are run without that right."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import permissions
import pytest

TESTS = Path(__file__).parent
BOUND = {
    "engine/test_full_disk.py": "that_may_not_be_written",
    "hostile/test_hostile_files.py": "permissions_of_the_disk",
}


@pytest.mark.skipif(permissions.bind(), reason="permissions bind this user: the tests of them run as they are")
@pytest.mark.parametrize("file", BOUND)
def test_where_root_runs_the_tests_permissions_are_tested_without_roots_rights(file: str, tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv to take root's rights away; on Debian: apt install util-linux")
    less = [setpriv, "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
    asked = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "below")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        [*less, *asked, "-k", BOUND[file], str(TESTS / file)],
        env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* passed", done.stdout, re.MULTILINE) and "skipped" not in done.stdout, done.stdout
