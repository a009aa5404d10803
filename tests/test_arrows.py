"""Which room may import which, and what `runbook diagnose` must never load."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "wizard"

BACKENDS = {"checkpoint", "sources", "sinks", "jobs"}
# Room → the rooms it may import. Modules directly under wizard/ are leaves, open to all, but for the TOP ones.
ALLOWED = {
    "tui": {"engine", "diagnosis", "audit", "runbook", "jobs", "catalogue"},
    "audit": {"engine"},
    "engine": {"catalogue", "runbook", "jobs", "diagnosis"},  # a rehearsal tells what Spark's log says
    "catalogue": BACKENDS | {"diagnosis"},  # the verdicts are facts a runbook may ask for
    "diagnosis": BACKENDS,
    "runbook": {"catalogue"},
    "checkpoint": set(),
    "sources": {"checkpoint"},  # the file source's log and the file sink's log have the format of a checkpoint's
    "sinks": {"checkpoint"},
    "jobs": set(),
    "spark": BACKENDS,
}
TOP = {"cli", "lint", "walking", "auditing", "line_mode", "demo"}  # the commands, and what only they use
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str | None:
    """`wizard.checkpoint.logfile` → `checkpoint`; None for a leaf and for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and ((PACKAGE / parts[1]).is_dir() or parts[1] == "cli") else None


def imported_by(path: Path, root: Path = ROOT) -> set[str]:
    """Every module the file imports, at any depth of the code: an import inside a function is an arrow too."""
    names: set[str] = set()
    package = path.relative_to(root).parent.parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).rstrip(".")
            # `from wizard import spark` names the room only in what it imports.
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_the_rooms_it_may(path: Path) -> None:
    own = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if path.parent == PACKAGE and path.stem in TOP:
        return
    rooms = {room_of(name) for name in imported_by(path) if name.startswith("wizard.")} - {None, own}
    assert rooms - ALLOWED.get(own or "", set()) == set()


def test_every_room_has_its_arrows_written_down() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE}
    assert rooms - ALLOWED.keys() == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_the_spark_room_imports_pyspark(path: Path) -> None:
    if PACKAGE / "spark" in path.parents:
        return
    assert {name.split(".")[0] for name in imported_by(path)} & {"pyspark", "py4j"} == set()


def test_an_arrow_is_seen_in_a_relative_import_inside_a_function(tmp_path: Path) -> None:
    path = tmp_path / "wizard" / "checkpoint" / "logfile.py"
    path.parent.mkdir(parents=True)
    path.write_text("def f():\n    from ..spark import demo\n    from . import state\n")
    assert imported_by(path, tmp_path) >= {"wizard.spark", "wizard.spark.demo", "wizard.checkpoint.state"}


def test_a_runbook_is_loaded_and_proved_without_the_code_that_acts() -> None:
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (PACKAGE / "runbook").glob("*.py")]
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {room_of(name) for name in done.stdout.split() if name.startswith("wizard.")}
    assert loaded <= {"runbook", "catalogue", None}


# Runs the command in a fresh interpreter and reports what it loaded and started.
DRIVER = """
import json, sys
started = []
sys.addaudithook(lambda event, args: started.append(repr(args)[:200])
                 if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork") else None)
sys.argv = ["runbook", *sys.argv[1:]]
from wizard.cli import main
code = 0
try:
    main()
except SystemExit as stop:
    code = stop.code
print(json.dumps({"code": code, "started": started, "modules": sorted(sys.modules)}), file=sys.stderr)
"""


def test_diagnose_of_a_local_checkpoint_loads_no_heavy_library_and_starts_no_process(checkpoint: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, "diagnose", "--checkpoint", str(checkpoint), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    seen = json.loads(done.stderr.splitlines()[-1])
    assert json.loads(done.stdout)["query_id"]
    heavy = {"pyspark", "py4j", "textual", "rich", "deltalake", "pyarrow", "jsonschema", "yaml", "fsspec"}
    assert {name.split(".")[0] for name in seen["modules"]} & heavy == set()
    assert seen["started"] == []
