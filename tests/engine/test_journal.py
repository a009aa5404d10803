"""The chain: what was written is read back, and whatever else is done to it is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wizard.engine.journal import FIRST, Journal, read_chain
from wizard.errors import InDoubt, JournalUnwritable


def written(path: Path, entries: int = 6) -> list[bytes]:
    journal = Journal.create(str(path))
    for number in range(entries):
        journal.append("probe", step=f"s{number}", fact="job.stopped", truth="holds", evidence=["ünï"])
    return path.read_bytes().splitlines(keepends=True)


def test_what_is_written_is_read_back_and_chained(tmp_path: Path) -> None:
    lines = written(tmp_path / "j")
    chain = read_chain(str(tmp_path / "j"))
    assert (len(chain.entries), chain.torn, chain.bad) == (6, None, None)
    told = [json.loads(line) for line in lines]
    assert told[0]["prev"] == FIRST
    assert [entry["prev"] for entry in told[1:]] == [entry["hash"] for entry in told[:-1]]
    assert chain.head == told[-1]["hash"]


@pytest.mark.parametrize("at", range(6))
def test_every_kind_of_tampering_is_found_and_the_first_bad_entry_named(tmp_path: Path, at: int) -> None:
    path = tmp_path / "j"
    lines = written(path)
    changed = lines[at].replace(b'"holds"', b'"fails"')
    assert changed != lines[at]
    edits = {
        "edited": [*lines[:at], changed, *lines[at + 1 :]],
        "inserted": [*lines[: at + 1], lines[at], *lines[at + 1 :]],
        "garbage": [*lines[:at], b"{]\n", *lines[at:]],
    }
    if at < 5:
        edits["removed"] = [*lines[:at], *lines[at + 1 :]]
        edits["swapped"] = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
    for how, edited in edits.items():
        path.write_bytes(b"".join(edited))
        chain = read_chain(str(path))
        assert chain.bad is not None, how
        assert chain.bad[0] == at + (how == "inserted"), how
        with pytest.raises(InDoubt):
            Journal.reopen(str(path))


def test_an_entry_rehashed_after_an_edit_breaks_the_next_one(tmp_path: Path) -> None:
    from wizard.engine.journal import hash_of

    path = tmp_path / "j"
    lines = written(path)
    entry = json.loads(lines[2])
    entry["truth"] = "fails"
    entry["hash"] = hash_of(entry)
    lines[2] = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    assert read_chain(str(path)).bad == (
        3,
        "does not follow the entry before it: one of the two was changed or removed",
    )


def test_a_torn_tail_is_told_and_cut_before_the_next_entry(tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = written(path)
    for keep in range(1, len(lines[-1])):
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][:keep])
        chain = read_chain(str(path))
        assert (len(chain.entries), chain.bad) == (5, None)
        assert chain.torn is not None
    journal = Journal.reopen(str(path))
    journal.append("end", outcome="aborted")
    assert read_chain(str(path)).bad is None


def test_an_entry_without_its_line_break_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = written(path)
    path.write_bytes(b"".join(lines)[:-1])
    Journal.reopen(str(path)).append("end", outcome="aborted")
    chain = read_chain(str(path))
    assert (chain.bad, chain.torn) == (None, None)
    assert [entry["kind"] for entry in chain.entries] == ["probe"] * 5 + ["end"]


def test_a_cut_tail_is_found_only_by_who_kept_the_head(tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = written(path)
    head = read_chain(str(path)).head
    path.write_bytes(b"".join(lines[:-1]))
    chain = read_chain(str(path))
    assert chain.bad is None
    assert chain.head != head


def test_an_object_store_keeps_an_entry_an_object(tmp_path: Path) -> None:
    url = "memory://journal-test/run/journal.jsonl"
    journal = Journal.create(url)
    journal.append("start", run="r")
    journal.append("end", outcome="aborted")
    assert [entry["kind"] for entry in read_chain(url).entries] == ["start", "end"]
    other = Journal(url, tuple(journal.entries[:1]))
    with pytest.raises(JournalUnwritable):
        other.append("end", outcome="resolved")  # somebody else wrote that entry first


def test_what_somebody_else_wrote_to_or_took_away_is_not_written_on(tmp_path: Path) -> None:
    """Two machines share the runs: the walk that was picked up elsewhere must not go on here."""
    path = tmp_path / "j"
    journal = Journal.create(str(path))
    journal.append("start", run="reset-a-20260101T000000-aaaa")
    journal.append("intent", action="sink.truncate")
    Journal.reopen(str(path)).append("continued")
    elsewhere = path.read_bytes()
    with pytest.raises(
        JournalUnwritable, match=r"somebody else wrote to it.*in doubt.*continue reset-a-20260101T000000"
    ):
        journal.append("did", number=0)
    assert path.read_bytes() == elsewhere
    other = Journal.reopen(str(path))
    path.unlink()
    with pytest.raises(JournalUnwritable, match="is gone"):
        other.append("did", number=0)
    assert not path.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_exit_code_7_and_leaves_no_half_entry(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, 2)
    # A limit on the size of files this process may write: the same error as a full disk, at a byte of our choice.
    program = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from wizard.engine.journal import Journal
from wizard.errors import JournalUnwritable
journal = Journal.reopen({str(path)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, ({path.stat().st_size + 30}, {path.stat().st_size + 30}))
try:
    journal.append("intent", step="truncate")
except JournalUnwritable as error:
    print(int(error.exit_code), error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("7 ")
    chain = read_chain(str(path))
    assert (len(chain.entries), chain.torn, chain.bad) == (2, None, None)


def test_an_entry_whose_keys_are_numbers_holds_when_it_is_read_again(tmp_path: Path) -> None:
    # As text they sort in another order than as numbers: 10 before 9.
    journal = Journal.create(str(tmp_path / "j"))
    journal.append("probe", data={9: "a", 10: "b"})
    assert read_chain(str(tmp_path / "j")).bad is None
    assert journal.entries[0]["data"] == {"9": "a", "10": "b"}
