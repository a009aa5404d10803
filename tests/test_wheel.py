"""The wheel carries all it needs: installed alone, away from the checkout, it diagnoses and lints.

The new environment gets the wheel and the distributions its metadata declares, linked from the environment the tests
run in, so that no network is needed and an undeclared import fails. pyspark is left out although it is declared:
`diagnose` must work without it, and its 450 MB are most of what an install takes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

from wizard import __version__

ROOT = Path(__file__).parent.parent
LEFT_OUT = {"pyspark", "py4j"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `runbook` command of an environment that holds the wheel and what it declares."""
    home = tmp_path_factory.mktemp("elsewhere") / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", home / "bin/python"]
    subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    site = next(home.glob("lib/python*/site-packages"))
    for declared in _declared_by(Distribution.at(next(site.glob("runbook-*.dist-info")))):
        _link(declared, site)
    return home / "bin/runbook"


def _declared_by(root: Distribution) -> list[Distribution]:
    """What `root` requires without extras, and what those require in turn."""
    found: dict[str, Distribution] = {}
    todo = [root]
    while todo:
        for requirement in todo.pop().requires or []:
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")
            if "extra ==" in requirement or name in found or name in LEFT_OUT:
                continue
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:
                continue  # for another platform or Python; if it is needed after all, the command fails
            todo.append(found[name])
    return list(found.values())


def _link(package: Distribution, site: Path) -> None:
    tops = {file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        link = site / top
        if not link.exists():
            link.symlink_to(package.locate_file(top))


def _run(command: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [command, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_holds_every_runbook_and_schema(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    runbooks = {f"wizard/_runbooks/{path.name}" for path in (ROOT / "runbooks").glob("*.yaml")}
    schemas = {str(path.relative_to(ROOT)) for path in (ROOT / "wizard").rglob("*.json")}
    assert runbooks and schemas
    assert (runbooks | schemas) - inside == set()


def test_the_installed_command_is_the_wheels_and_not_the_checkouts(installed: Path, tmp_path: Path) -> None:
    where = _run(installed.with_name("python"), "-c", "import wizard, sys; print(wizard.__file__)", cwd=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(installed.parent.parent)
    assert _run(installed, "--version", cwd=tmp_path).stdout.split()[-1] == __version__


def test_the_installed_command_diagnoses_without_pyspark(installed: Path, checkpoint: Path, tmp_path: Path) -> None:
    done = _run(installed, "diagnose", "--checkpoint", checkpoint, "--json", cwd=tmp_path)
    assert done.stderr == ""
    assert json.loads(done.stdout)["query_id"] == json.loads((checkpoint / "metadata").read_text())["id"]


def test_the_installed_command_lints_its_own_runbooks(installed: Path, tmp_path: Path) -> None:
    done = _run(installed, "lint", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
