"""The embed benchmark's own arithmetic, its processes, and the stores that it embeds into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.embed import peer, pipeline, raw, scale
from benchmarks.embed.__main__ import PARTS, TINY, Sizes
from benchmarks.embed.crew import Done, crew, environment
from mudg_core.storage import ArtifactRef, ArtifactStore


def ref(number: int) -> ArtifactRef:
    return ArtifactRef(stage="corpus-shard", key=f"{number:064x}", digest=f"{number:064x}")


def test_shards_are_dealt_evenly() -> None:
    assert raw.deal([ref(n) for n in range(4)], 2) == [(ref(0), ref(2)), (ref(1), ref(3))]
    with pytest.raises(ValueError, match="3 shards do not go evenly to 2 processes"):
        raw.deal([ref(n) for n in range(3)], 2)


@pytest.mark.parametrize("sizes", [TINY, Sizes()])
def test_every_part_has_as_many_shards_for_each_worker(sizes: Sizes) -> None:
    assert set(PARTS) == {"raw", "vit", "peer", "overhead", "growth"}
    for rows, per_shard in ((sizes.raw, sizes.rows_per_shard), (sizes.vit, sizes.vit_rows_per_shard)):
        assert rows % (2 * per_shard) == 0
    most = max(how.jobs * max(1, how.workers) for how in sizes.peer_trials.ways)
    assert sizes.peer_trials.shards >= most  # a process without a tar is an error of clip-retrieval's


def test_a_ratio_leaves_loading_out() -> None:
    assert raw.Round(stage=12, loading=2, bare=5).ratio == 0.5


def test_wall_time_runs_from_the_first_to_the_last() -> None:
    assert Done([None, None], [(1.0, 4.0), (1.5, 3.0)]).wall == 3.0


def test_start_up_is_taken_off_with_its_rows() -> None:
    assert peer.rate(peer.Command(1100, 30), peer.Command(100, 20)) == 100
    assert peer.rate(peer.Command(1100, 20), peer.Command(100, 20)) is None


def test_the_quickest_way_is_chosen() -> None:
    slow, quick = peer.How(workers=1), peer.How(jobs=2)
    assert peer.quickest({slow: 2.0, quick: 1.0}) == quick


def test_tars_get_numbers_in_a_row(tmp_path: Path) -> None:
    tars = [tmp_path / name for name in ("b.tar", "a.tar")]
    for tar in tars:
        tar.write_text(tar.name)
    pattern = peer.link(tars, tmp_path / "linked")
    assert pattern == f"{tmp_path}/linked/{{00000..00001}}.tar"
    assert (tmp_path / "linked/00000.tar").read_text() == "b.tar"


def test_time_outside_the_stage_is_that_of_all_workers() -> None:
    assert scale.outside(inside=15, workers=2, seconds=10) == 0.25


def test_hours_are_those_of_the_stage() -> None:
    plan = {"stages": [{"stage": "embed", "hours": 0.5}, {"stage": "pair", "hours": 2}]}
    assert scale.hours_of("embed", plan) == 0.5


def test_a_crew_stays_and_tells_of_errors() -> None:
    with crew(2, {"MUDG_CREW": "set"}) as members:
        assert members.do(os.getenv, ["MUDG_CREW", "NOBODY_HAS_SET_THIS"]).results == ["set", None]
        with pytest.raises(FileNotFoundError):
            members.do(os.listdir, [".", "no such folder"])
        pids = [members.do(os.path.realpath, ["/proc/self"] * 2).results for _ in range(2)]
    assert pids[0] == pids[1] and len(set(pids[0])) == 2
    assert "MUDG_CREW" not in os.environ


def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUDG_KNOWN", "before")
    with environment({"MUDG_KNOWN": "now", "MUDG_NEW": "now"}):
        assert os.environ["MUDG_KNOWN"] == os.environ["MUDG_NEW"] == "now"
    assert os.environ["MUDG_KNOWN"] == "before" and "MUDG_NEW" not in os.environ


def test_workers_get_one_thread_and_our_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    found = pipeline.worker_environment()
    assert found["OMP_NUM_THREADS"] == "1" and int(found["MALLOC_TRIM_THRESHOLD_"]) == 256 << 20


def test_a_fresh_store_has_the_drawn_shards_and_no_more(tmp_path: Path) -> None:
    settings = pipeline.settings_for(tmp_path / "home", 100, 50, compute={"shards_per_task": 4})
    assert pipeline.known_shards(settings) is None
    shards = pipeline.draw_here(settings)
    made = pipeline.embed_here(settings, shards)
    assert pipeline.known_shards(settings) == shards
    assert pipeline.models_loaded(settings, shards * 3) == 2
    with pipeline.fresh_store(settings) as fresh:
        assert pipeline.known_shards(fresh) == shards
        assert ArtifactStore(fresh.storage).objects.read(f"artifacts/{made[0].stage}") is None
        again = pipeline.embed_here(fresh, shards)
        assert again == made  # a seed gives the same bytes, so the same digests
        assert pipeline.rows_of(fresh, again) == pipeline.rows_of(settings, made) <= 100
        assert pipeline.seconds_inside(fresh, again) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert pipeline.tar_of(settings, shards[0]).is_file()
