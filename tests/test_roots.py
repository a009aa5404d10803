"""Nothing outside the declared places is changed, however it is spelt."""

from __future__ import annotations

from pathlib import Path

import pytest

from wizard.roots import OutsideRoots, Roots, behind_links


@pytest.mark.parametrize("below", ["", "/", "/a", "/a/b", "/x/../a"])
def test_a_root_and_what_is_below_it_may_change(below: str, tmp_path: Path) -> None:
    (tmp_path / "root/x").mkdir(parents=True)
    Roots([str(tmp_path / "root")]).check(f"{tmp_path}/root{below}")


@pytest.mark.parametrize("spelt", ["root2", "root/../other", "root/link/file", "root/..", "", "."])
def test_names_that_begin_alike_dots_and_links_lead_nowhere(spelt: str, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "root/link").symlink_to(tmp_path / "other")
    with pytest.raises(OutsideRoots, match="nothing was done"):
        Roots([str(tmp_path / "root")]).check(f"{tmp_path}/{spelt}")


def test_a_link_itself_may_be_moved(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link").symlink_to("/etc")
    Roots([str(tmp_path / "root")]).check(f"{tmp_path}/root/link")


@pytest.mark.parametrize(
    "url", ["s3://bucket/other", "s3://bucket/root2/x", "s3://bucket/root/../other", "gs://bucket/root/x"]
)
def test_urls_are_held_to_their_store_and_prefix(url: str) -> None:
    roots = Roots(["s3://bucket/root"])
    roots.check("s3://bucket/root/a")
    with pytest.raises(OutsideRoots):
        roots.check(url)


def test_a_root_that_is_a_link_itself_is_what_it_led_to_when_the_walk_began(tmp_path: Path) -> None:
    for name in ("real", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "root"
    link.symlink_to(tmp_path / "real")
    roots = [str(link), str(tmp_path / "other")]
    assert behind_links(roots) == [str(tmp_path / "real")]
    real = behind_links(roots)
    Roots([str(link)], real).check(f"{link}/offsets/1")
    link.unlink()
    link.symlink_to(tmp_path / "other")
    with pytest.raises(OutsideRoots):
        Roots([str(link)], real).check(f"{link}/offsets/1")
