"""Runs listed, told and exported: all that happened, in order, and no secret."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from test_audit_verify import run_audit
from walked import HOSTILE, LOSS, SECRETS, walked

from wizard.audit.listing import moment_of
from wizard.errors import BadInput

FORMATS = ("html", "md", "json")


def listed(*arguments: object) -> list[str]:
    return [one["run"] for one in json.loads(run_audit("list", "--json", *arguments, jobs=walked().jobs).stdout)]


def test_runs_are_listed_newest_first_one_aligned_line_each() -> None:
    header, *rows = run_audit("list", jobs=walked().jobs).stdout.splitlines()
    assert [row.split()[-1] for row in rows] == [walked().whole, walked().waived, walked().declined]
    at = header.index("VERDICT")
    assert [row[at:].split()[0] for row in rows] == ["undone", "aborted", "aborted"]
    assert {row.index("reset-clicks") for row in rows} == {header.index("RUN", header.index("CHANGED"))}


def test_a_list_is_filtered_by_job_person_runbook_verdict_and_time() -> None:
    everything = [walked().whole, walked().waived, walked().declined]
    assert listed("--job", "clicks") == listed("--runbook", "reset") == listed("--since", "1d") == everything
    assert listed("--job", "other") == listed("--runbook", "resume") == listed("--who", "eve") == []
    assert listed("--who", "bob") == [walked().whole]  # who picked it up counts, not only who began it
    assert listed("--who", "ann") == everything
    assert listed("--verdict", "aborted") == everything[1:]
    assert listed("--verdict", "in_doubt") == []
    began = json.loads(run_audit("list", "--json", jobs=walked().jobs).stdout)[1]["began"]
    assert listed("--since", began) == everything[:2]
    assert listed("--until", began) == everything[1:]
    assert listed("--until", "2001-01-01") == []
    assert listed("--until", f"{datetime.now(UTC):%Y-%m-%d}")[-1:] == everything[2:]


@pytest.mark.parametrize(("option", "value"), [("--since", "soon"), ("--until", "2026-13-01"), ("--verdict", "fine")])
def test_a_filter_that_means_nothing_is_bad_input(option: str, value: str) -> None:
    with pytest.raises(BadInput, match=re.escape(f"{option} {value!r}")):
        listed(option, value)


def test_a_day_as_an_end_is_all_of_it() -> None:
    assert moment_of("2026-11-18", "--until", end=True) == datetime(2026, 11, 18, 23, 59, 59, 999999, UTC)
    assert moment_of("2026-11-18", "--since") == datetime(2026, 11, 18, tzinfo=UTC)
    assert moment_of("2026-11-18T03:15+01:00", "--since") == datetime(2026, 11, 18, 2, 15, tzinfo=UTC)


def test_a_walk_is_told_in_order_with_who_what_before_and_after() -> None:
    text = run_audit("show", walked().whole, jobs=walked().jobs).stdout
    told = [
        "ann began reset for clicks",
        "Asked: In place, or beside?",
        "in_place, by ann",
        "ann confirmed sink.truncate by typing “clicks”",
        "ann set out on sink.truncate",
        "evidence before:",
        "checkpoint.fenced holds: ",
        "effects:",
        "move 56 files",
        "bob picked the run up",
        "interrupted:",
        "sink.truncate was in flight: begun in entry",
        "sink.truncate: done and verified",
        "evidence after:",
        "sink.empty holds",
        "job.start_fresh: done and verified",
        "Ended: hand_over",
        "bob set out to take the run back",
        "job.start_fresh: start clicks",
        "sink.truncate: move 56 files",
        "Taken back by bob: everything is as it was before the run",
    ]
    at = 0
    for words in told:
        assert words in text[at:], words
        at = text.index(words, at) + len(words)


def test_every_entry_has_its_place_in_the_story() -> None:
    told = json.loads(run_audit("show", walked().whole, "--json", jobs=walked().jobs).stdout)
    kinds = [entry["kind"] for entry in told["entries"]]
    assert [part["entry"] for part in told["story"]] == [
        n for n, kind in enumerate(kinds) if kind not in ("did", "undid")
    ]
    effects = [
        line
        for part in told["story"]
        for each in part["details"]
        if each["what"] == "effects"
        for line in each["lines"]
    ]
    assert sum("[done " in line for line in effects) == kinds.count("did")
    assert sum("taken back " in line for line in effects) == kinds.count("undid")


def test_a_waiver_is_told_in_so_many_words_and_at_the_top() -> None:
    text = run_audit("show", walked().waived, jobs=walked().jobs).stdout
    assert f"ann waived source.can_rebuild in these words: “{LOSS}”; it was not proved" in text
    assert f"unproved  source.can_rebuild, waived by ann: “{LOSS}”" in text
    for form in FORMATS:
        assert LOSS in run_audit("export", walked().waived, "--format", form, jobs=walked().jobs).stdout


def test_a_run_in_doubt_is_told_with_what_to_type() -> None:
    text = run_audit("show", walked().whole, jobs=walked().doubt).stdout
    assert f"in doubt: go on with `runbook continue {walked().whole}`, or take it back with `runbook undo" in text
    assert "[not known to be done]" in text
    assert [one["verdict"] for one in json.loads(run_audit("list", "--json", jobs=walked().doubt).stdout)] == [
        "in doubt"
    ]


def test_a_broken_journal_is_listed_and_told_as_far_as_it_can_be_believed(tmp_path: Path) -> None:
    place = tmp_path / "runs" / walked().whole
    shutil.copytree(walked().runs / walked().whole / "manifests", place / "manifests")
    lines = (walked().runs / walked().whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (place / "journal.jsonl").write_bytes(b"".join([*lines[:4], *lines[5:]]))
    shutil.copy(walked().jobs, tmp_path / "jobs.yaml")
    assert "broken" in run_audit("list", jobs=tmp_path / "jobs.yaml").stdout
    told = json.loads(run_audit("show", walked().whole, "--json", jobs=tmp_path / "jobs.yaml").stdout)
    assert (told["verdict"], len(told["entries"]), told["record"]["first_bad"]) == ("broken", 4, 4)
    (place / "journal.jsonl").write_bytes(b"".join(lines[1:]))  # not even the job can be read
    for form in FORMATS:
        assert "broken" in run_audit("export", walked().whole, "--format", form, jobs=tmp_path / "jobs.yaml").stdout
    assert walked().whole in run_audit("list", "--job", "clicks", jobs=tmp_path / "jobs.yaml").stdout


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_stands_alone_and_runs_nothing_though_the_evidence_is_hostile() -> None:
    html = run_audit("export", walked().whole, jobs=walked().jobs).stdout
    page = Page()
    page.feed(html)
    assert HOSTILE in page.text  # shown, as text
    assert "<script" not in html
    assert set(page.tags) <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "table",
        "tr",
        "th",
        "td",
        "ol",
        "li",
        "time",
        "dl",
        "dt",
        "dd",
    }
    assert {name for name, _ in page.attributes} <= {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "scope",
    }
    style = html[html.index("<style>") : html.index("</style>")]
    assert "prefers-color-scheme: dark" in style and "@media print" in style
    assert "url(" not in style and "@import" not in style


def test_nothing_hostile_is_markup_in_the_post_mortem() -> None:
    text = run_audit("export", walked().whole, "--format", "md", jobs=walked().jobs).stdout
    assert "<" not in text
    assert r"&lt;script&gt;alert\(1\)&lt;/script&gt; \| \*\*bold\*\* \[x\]\(http://evil\)" in text


def everything_said() -> dict[str, str]:
    """All that the tool wrote or says about these runs."""
    w = walked()
    said = {
        f"{run}/{name}": (w.runs / run / name).read_text()
        for run in (w.declined, w.waived, w.whole)
        for name in ["journal.jsonl"]
    }
    said |= {str(path): path.read_text() for path in w.runs.glob("*/manifests/*.json")}
    said["events"] = json.dumps(w.events)
    for jobs in (w.jobs, w.doubt):
        for command in ("list", "verify"):
            for form in ([], ["--json"]):
                said[f"{command} {form} {jobs}"] = run_audit(command, *form, jobs=jobs).stdout
        said[f"show {jobs}"] = run_audit("show", w.whole, jobs=jobs).stdout
        for form in FORMATS:
            said[f"export {form} {jobs}"] = run_audit("export", w.whole, "--format", form, jobs=jobs).stdout
    return said


def test_no_secret_is_in_a_journal_an_event_a_telling_or_an_export() -> None:
    said = everything_said()
    assert "jdbc:postgresql://etl:***@db" in "".join(said.values())  # the hostile line did get there, masked
    assert {(secret, where) for secret in SECRETS for where, text in said.items() if secret in text} == set()


def test_a_secret_that_an_older_journal_holds_is_masked_when_it_is_told(tmp_path: Path) -> None:
    from wizard.engine.journal import Journal

    run = "reset-clicks-20261118T000000-abcd"
    journal = Journal.create(str(tmp_path / "runs" / run / "journal.jsonl"))
    data: dict[str, Any] = {
        "argv": ["spark-submit", "--password", "hunter2-argv", "--conf", "spark.ssl.keyPassword=hunter2-option"],
        "env": {"AWS_SECRET_ACCESS_KEY": "hunter2-option", "TOKENS": ["hunter2-bearer-token"]},
        "jaas": 'x required password="hunter2-jaas";',
    }
    journal.append("start", run=run, job="clicks", runbook="reset", digest="0" * 64, mode="live", locks=["clicks"],
                   registry="s3://AKIAIOSFODNN7EXAMPLE:hunter2-url@bucket/jobs.yaml", version="0", step="x", who="ann")  # fmt: skip
    journal.append("probe", step="x", fact="job.stopped", truth="holds", data=data,
                   evidence=["kafka.sasl.jaas.config: 'x password=\"hunter2-jaas\"'", "https://u:hunter2-url@h/?sig=hunter2-option"])  # fmt: skip
    shutil.copy(walked().jobs, tmp_path / "jobs.yaml")
    said = [run_audit("export", run, "--format", form, jobs=tmp_path / "jobs.yaml").stdout for form in FORMATS]
    said += [run_audit(command, jobs=tmp_path / "jobs.yaml").stdout for command in ("list", "verify")]
    said.append(run_audit("show", run, jobs=tmp_path / "jobs.yaml").stdout)
    assert [secret for secret in SECRETS if secret in "".join(said)] == []


def test_an_export_goes_to_a_file_named_without_a_directory(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("runbook"), "audit", "export", walked().whole, "--format", "json"]
    done = subprocess.run(
        [*command, "--to", "out.json", "--jobs", walked().jobs],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "written: out.json\n")
    told = json.loads((tmp_path / "out.json").read_text())
    assert (told["verdict"], told["head"]) == ("undone", walked().heads["undone"])


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        run_audit("export", walked().whole, "--to", tmp_path / "file" / "x.html", jobs=walked().jobs)


def test_the_quarantine_of_a_job_is_in_its_status() -> None:
    command = [Path(sys.executable).with_name("runbook"), "status", "--json", "--jobs", walked().jobs]
    (one,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    files = [path for path in walked().runs.glob("*/quarantine/**/*") if path.is_file()]
    assert (one["quarantine"]["files"], one["quarantine"]["bytes"]) == (
        len(files),
        sum(p.stat().st_size for p in files),
    )
    assert files and one["quarantine"]["oldest_seconds"] >= 0


@pytest.mark.parametrize(
    "entry", [{}, {"kind": "start"}, {"kind": "intent", "at": 5}, {"kind": "undid", "at": "soon"}, {"kind": []}]
)
def test_entries_that_no_version_wrote_are_told_as_they_are_though_every_hash_fits(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    from wizard.engine.journal import FIRST, hash_of

    run = "reset-clicks-20261118T000000-abcd"
    told = {"seq": 0, **entry, "prev": FIRST}
    told["hash"] = hash_of(told)
    (tmp_path / "runs" / run).mkdir(parents=True)
    (tmp_path / "runs" / run / "journal.jsonl").write_text(json.dumps(told, separators=(",", ":")) + "\n")
    shutil.copy(walked().jobs, tmp_path / "jobs.yaml")
    jobs = tmp_path / "jobs.yaml"
    assert json.loads(run_audit("list", "--json", jobs=jobs).stdout)[0]["run"] == run
    assert run_audit("verify", jobs=jobs).return_value == 4
    for form in FORMATS:
        assert run_audit("export", run, "--format", form, jobs=jobs).return_value == 0
    assert run_audit("show", run, jobs=jobs).return_value == 0
