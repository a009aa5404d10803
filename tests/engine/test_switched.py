"""A reset beside: the job is switched to the second output, started there, and takes what comes after."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kill_driver import CASES
from stand import ANSWERS, JOB, READER, TOPIC, Stand, differing, fork, words

from wizard.sources.embedded_log import EmbeddedLog, Record


@pytest.mark.parametrize("reader", [False, True])
def test_the_switched_job_runs_on_its_new_output_and_an_undo_switches_it_back(reader: bool, tmp_path: Path) -> None:
    stand = Stand.build(tmp_path / "w", reader=reader)
    before, old = stand.tree(), (stand.checkpoint, stand.sink)
    try:
        if reader:
            stand.start(READER)
        given = ANSWERS["reset"] | CASES["beside-reader" if reader else "beside"].given
        code, said = fork(words(stand, "reset", JOB, given=given))
        assert code == 0, said
        assert stand.checkpoint != old[0] and stand.sink != old[1]
        assert not any(place.exists() and list(place.iterdir()) for place in old)
        assert stand.runs_now(JOB)
        EmbeddedLog(stand.root / "log", TOPIC).append(0, [Record(2000, b"k", b"after the switch")])
        arrived(stand)
        if reader:
            assert stand.runs_now(READER)
            assert stand.job(READER)["source"]["path"] == stand.job(JOB)["sink"]["path"]
        stand.finish()
        assert all(stand.found(name) == stand.expected() for name in stand.jobs_there)
        code, said = fork(words(stand, "undo", stand.only_run(), confirm=None))
        assert code == 0, said
        assert differing(stand.tree(), before) == []
    finally:
        stand.stop_all()


def arrived(stand: Stand) -> None:
    deadline = time.monotonic() + 60
    while stand.found() != stand.expected():
        assert time.monotonic() < deadline, "the switched job does not take what comes"
        time.sleep(0.1)
