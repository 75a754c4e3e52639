"""Garbage collection: what goes, what stays, and that no run loses what it uses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mudg_core.errors import ConflictError, DataError, MissingArtifactError
from mudg_core.settings import GcSettings, StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore, Recipe, build_info, layout
from mudg_core.storage.browse import artifacts
from mudg_core.storage.gc import collect as collecting
from mudg_core.storage.gc.collect import Collection, collect_garbage
from mudg_core.storage.gc.leases import LeaseHolder, read_leases
from mudg_core.storage.gc.marks import GcMarks
from mudg_core.storage.objects import Entry
from tests.core.storage.making import forbidden, maker, overwrite, path_of, stored

DAY = timedelta(days=1)
RULES = GcSettings()


def build(store: ArtifactStore, stage: str, number: int = 0, **parents: Any) -> ArtifactRef:
    recipe = Recipe(stage=stage, algorithm=1, settings={"n": number}, parents=parents)
    return store.build(recipe, maker(f"{stage} {number}".encode()))


def collect(store: ArtifactStore, after: timedelta, **how: Any) -> Collection:
    """As if so much time had passed since everything was made."""
    return collect_garbage(store, how.pop("rules", RULES), now=datetime.now(UTC) + after, **how)


def actions(done: Collection) -> dict[str, str]:
    return {verdict.name: verdict.action for verdict in done.verdicts}


def why(done: Collection, ref: ArtifactRef) -> str:
    return next(verdict.why for verdict in done.verdicts if verdict.name == ref.place)


def there(store: ArtifactStore, ref: ArtifactRef) -> bool:
    try:
        store.manifest(ref)
    except MissingArtifactError:
        return False
    return True


def test_what_nobody_names_is_condemned_first_and_deleted_a_grace_period_later(store: ArtifactStore) -> None:
    ref = build(store, "cells")
    assert actions(collect(store, DAY / 2)) == {ref.place: "keep"}
    assert actions(collect(store, 6 * DAY)) == {ref.place: "keep"}
    assert actions(collect(store, 8 * DAY)) == {ref.place: "condemn"}
    assert actions(collect(store, 8.9 * DAY)) == {ref.place: "wait"} and there(store, ref)
    gone = collect(store, 9.1 * DAY)
    assert actions(gone) == {ref.place: "delete"} and gone.sums()["delete"]["count"] == 1
    assert stored(store) == [] and GcMarks(store.objects).read()[0] == {}
    assert collect(store, 9.1 * DAY).verdicts == []


def test_a_dry_run_says_the_same_and_changes_nothing(store: ArtifactStore) -> None:
    build(store, "cells")
    build(store, "report")
    collect(store, 8 * DAY)
    for after in (8 * DAY, 9.1 * DAY, 400 * DAY):
        before = {path: store.objects.read(path) for path in store.objects.list("") if "scratch" not in path}
        told = collect(store, after, dry_run=True)
        now = {path: store.objects.read(path) for path in store.objects.list("") if "scratch" not in path}
        assert now == before and told.dry_run
    assert told.lines() == collect(store, 400 * DAY).lines()


def test_pointers_keep_all_that_their_artifacts_were_made_from(store: ArtifactStore) -> None:
    """A chain of ten, the last version and those before it; a withdrawn one is not kept."""
    last = build(store, "embedding-shard")
    for number in range(10):
        last = build(store, f"step-{number}", parent=last)
    versions = [build(store, "index", number, parts=(last,)) for number in range(6)]
    pointer = None
    for number, ref in enumerate(versions):
        pointer = store.move_pointer("index-current", ref, pointer, withdraw=number == 5)
    collect(store, 1000 * DAY)
    done = collect(store, 1002 * DAY)
    assert [there(store, ref) for ref in versions] == [False, True, True, True, False, True]
    assert why(done, versions[5]) == "pointer index-current refers to it"
    assert why(done, versions[3]) == "kept for rollback"
    assert why(done, last) == "a kept artifact was made from it"
    assert len(list(store.lineage(versions[1]))) == 12


@pytest.mark.parametrize(
    ("stage", "days"),
    [("report", 90), ("model", 365), ("dataset", 180), ("embedding-shard", 30), ("cells", 7)],
)
def test_kinds_are_kept_for_as_long_as_the_settings_say(
    local_settings: StorageSettings, stage: str, days: int
) -> None:
    store = ArtifactStore(local_settings)
    parent = build(store, "picks")
    ref = build(store, stage, parent=parent)
    done = collect(store, (days - 0.1) * DAY, dry_run=True)
    assert set(actions(done).values()) == {"keep"} and why(done, ref) == f"within {days} days"
    done = collect(store, (days + 0.1) * DAY, dry_run=True)
    assert actions(done) == {ref.place: "condemn", parent.place: "condemn"}
    early = collect(store, 2 * DAY, dry_run=True, older_than=DAY)
    assert set(actions(early).values()) == {"condemn"}
    young = collect(store, DAY / 2, dry_run=True, older_than=timedelta(0))
    assert set(actions(young).values()) == {"keep"} and why(young, ref) == "younger than 24 h"
    field = {"cells": "other_days", "embedding-shard": "shard_days"}.get(stage, f"{stage}_days")
    forever = collect(store, 9999 * DAY, dry_run=True, rules=GcSettings(**{field: None, "other_days": None}))
    assert why(forever, ref) == "kept forever"


def test_a_cache_hit_on_a_condemned_artifact_saves_it_and_its_family(store: ArtifactStore) -> None:
    shard = build(store, "corpus-shard")
    cells = build(store, "cells", shard=shard)
    other = build(store, "other")
    collect(store, 100 * DAY)
    recipe = Recipe(stage="cells", algorithm=1, settings={"n": 0}, parents={"shard": shard})
    assert ArtifactStore(store.settings).build(recipe, forbidden) == cells
    done = collect(store, 102 * DAY)
    assert not there(store, other)
    assert actions(done)[cells.place] == "condemn"  # it was used 102 days ago: a new grace period at least
    assert there(store, cells) and there(store, shard)


def test_what_was_wanted_again_is_as_good_as_new(local_settings: StorageSettings) -> None:
    """Marks are dated by the clock of whoever wants it: here, that of today."""
    store = ArtifactStore(local_settings)
    ref = build(store, "cells")
    collect(store, 8 * DAY)
    marks = GcMarks(store.objects)
    condemned, etag = marks.read()
    used = {
        name: mark.model_copy(update={"state": "used", "since": (datetime.now(UTC) + 8 * DAY).isoformat()})
        for name, mark in condemned.items()
    }
    marks.write(used, etag)
    assert why(collect(store, 14 * DAY), ref) == "within 7 days"
    assert actions(collect(store, 16 * DAY)) == {ref.place: "condemn"}


def test_what_is_dying_counts_as_missing_and_is_made_anew(store: ArtifactStore) -> None:
    """The collector was stopped between its mark and its first delete."""
    ref = build(store, "cells")
    old = store.manifest(ref)
    collect(store, 8 * DAY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "sweep", _killed)
        with pytest.raises(KeyboardInterrupt):
            collect(store, 10 * DAY)
    fresh = ArtifactStore(store.settings)
    again = build(fresh, "cells")
    assert again == ref and store.manifest(ref).circumstances.attempt != old.circumstances.attempt
    done = collect(store, 2 * DAY)
    assert there(store, ref) and actions(done)[ref.place] == "keep"
    fresh.verify(ref)


def _killed(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("deletes", range(1, 8))
def test_f40_killed_after_any_delete_the_next_one_finishes(
    local_settings: StorageSettings, deletes: int
) -> None:
    store = ArtifactStore(local_settings)
    live = build(store, "embedding-shard")
    kept = build(store, "index", parts=(live,))
    store.move_pointer("index-current", kept, None)
    old = build(store, "old", shard=live)
    older = build(store, "older", old=old)
    collect(store, 8 * DAY)
    delete, left = store.objects.delete, [deletes]

    def dies(path: str, expected_etag: str | None = None) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        delete(path, expected_etag)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.objects, "delete", dies)
        if deletes < 7:
            with pytest.raises(KeyboardInterrupt):
                collect(store, 10 * DAY)
            assert there(store, old) or not there(store, older)  # never a child without its parent
        else:
            collect(store, 10 * DAY)
    collect(store, 20 * DAY)
    assert not there(store, old) and not there(store, older)
    assert {path.split("/")[1] for path in stored(store)} == {"index", "embedding-shard"}
    store.verify(kept)
    store.verify(live)


def test_f39_a_live_lease_keeps_what_it_names_and_what_was_made_since(store: ArtifactStore) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_info, "now", lambda: (datetime.now(UTC) - DAY).isoformat(timespec="seconds"))
        named, other = build(store, "cells", 0), build(store, "cells", 1)
        parent = build(store, "corpus-shard")
        child = build(store, "step", parent=parent)
    holder = LeaseHolder(store.objects, minutes=60 * 24 * 30)
    holder.use([named, child])
    later = build(store, "cells", 2)
    collect(store, 20 * DAY)
    done = collect(store, 22 * DAY)
    assert not there(store, other) and all(there(store, ref) for ref in (named, parent, child, later))
    assert why(done, named) == "in use by a run"
    assert why(done, later) == "newer than the start of an active run"
    collect(store, 40 * DAY)
    collect(store, 42 * DAY)  # the lease has run out, and counts for nothing
    assert not any(there(store, ref) for ref in (named, parent, child, later))
    holder.end()


def test_a_lease_is_renewed_with_what_was_used_since_and_ends(store: ArtifactStore) -> None:
    first, second = build(store, "cells", 0), build(store, "cells", 1)
    holder = LeaseHolder(store.objects, minutes=10)
    assert read_leases(store.objects) == []
    holder.use([first])
    (lease,) = read_leases(store.objects)
    assert lease.keeps == (first.place,) and lease.expires - lease.started >= timedelta(minutes=10)
    holder.use([second])
    holder.renew()
    (renewed,) = read_leases(store.objects)
    assert set(renewed.keeps) == {first.place, second.place} and renewed.started == lease.started
    holder.end()
    holder.renew()
    assert read_leases(store.objects) == []


def test_leases_renew_themselves(local_settings: StorageSettings) -> None:
    store = ArtifactStore(local_settings)
    holder = LeaseHolder(store.objects, minutes=0.003)
    renewed: list[bool] = []
    enough = threading.Event()
    renew = holder.renew

    def counted() -> None:
        renew()
        renewed.append(True)
        if len(renewed) == 3:
            enough.set()

    holder.renew = counted  # type: ignore[method-assign]
    holder.use([])
    assert enough.wait(60)
    holder.end()


def test_a_damaged_lease_or_mark_stops_the_collector(local_settings: StorageSettings) -> None:
    store = ArtifactStore(local_settings)
    build(store, "cells")
    store.objects.put_new(layout.lease("ab" * 8), b"{")
    with pytest.raises(DataError, match="lease is damaged"):
        collect(store, 100 * DAY)
    store.objects.delete(layout.lease("ab" * 8))
    store.objects.put_new(layout.CONDEMNED, b'{"cells/x": 3}')
    with pytest.raises(DataError, match="marks of garbage collection"):
        collect(store, 100 * DAY)


def test_a_pointer_to_a_damaged_artifact_stops_the_collector(store: ArtifactStore) -> None:
    shard = build(store, "embedding-shard")
    index = build(store, "index", parts=(shard,))
    store.move_pointer("index-current", index, None)
    overwrite(store, layout.manifest(index.stage, index.key), b"{")
    with pytest.raises(DataError, match="nothing is collected"):
        collect(store, 100 * DAY)
    assert there(store, shard)


def test_a_run_that_takes_something_back_makes_the_collector_think_again(store: ArtifactStore) -> None:
    """The run comes between what the collector has read and what it writes."""
    ref, other = build(store, "cells", 0), build(store, "cells", 1)
    collect(store, 8 * DAY)
    plan, plans = collecting.make_plan, []

    def and_then(*arguments: Any) -> Any:
        made = plan(*arguments)
        plans.append(made)
        if len(plans) == 1:
            assert ref.place in made.dying
            assert build(ArtifactStore(store.settings), "cells", 0) == ref
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "make_plan", and_then)
        done = collect(store, 10 * DAY)
    assert len(plans) == 2 and there(store, ref) and not there(store, other)
    assert actions(done)[ref.place] != "delete"
    store.verify(ref)


def test_a_pointer_moved_to_something_condemned_saves_it(store: ArtifactStore) -> None:
    part = build(store, "index-part")
    index = build(store, "index", parts=(part,))
    collect(store, 8 * DAY)
    ArtifactStore(store.settings).move_pointer("index-current", index, None)
    collect(store, 30 * DAY)
    collect(store, 60 * DAY)
    assert there(store, index) and there(store, part)


def test_a_parent_waits_until_its_children_may_go(local_settings: StorageSettings) -> None:
    """Condemned at different times: neither is ever without the other."""
    store = ArtifactStore(local_settings)
    parent = build(store, "cells")
    child = build(store, "dataset", cells=parent)
    collect(store, 181 * DAY)
    marks = GcMarks(store.objects)
    later = (datetime.now(UTC) + 181.5 * DAY).isoformat()
    marks.change(lambda m: m | {child.place: m[child.place].model_copy(update={"since": later})})
    assert actions(collect(store, 182.2 * DAY)) == {parent.place: "wait", child.place: "wait"}
    assert set(actions(collect(store, 182.8 * DAY)).values()) == {"delete"}


def test_f41_a_commit_while_the_collector_is_at_work(local_settings: StorageSettings) -> None:
    """A child of something that is dying is committed by a run that looked at its parent long ago."""
    store = ArtifactStore(local_settings)
    parent = build(store, "cells")
    collect(store, 8 * DAY)
    plan = collecting.make_plan

    def and_then(*arguments: Any) -> Any:
        made = plan(*arguments)
        build(store, "late", 0, parent=parent)  # without asking for its parent first
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting, "make_plan", and_then)
        collect(store, 10 * DAY)
    late = build(store, "late", 0, parent=parent)
    store.verify(late)  # whole by itself
    with pytest.raises(MissingArtifactError, match="run the stage again"):
        store.manifest(parent)


def test_half_written_attempts_checkpoints_and_probes_go_when_they_are_old(store: ArtifactStore) -> None:
    kept = build(store, "cells")
    recipe = Recipe(stage="slow", algorithm=1)
    store.checkpoints(recipe).save(1, {"a": np.zeros(3)}, {})
    store.objects.put_new(layout.attempt_file("cells", kept.key, "ee" * 8, "x"), b"half")
    store.objects.put_new(layout.attempt_file("x", "a" * 64, "ff" * 8, "y"), b"half")
    store.objects.put_new(layout.probe("dd" * 8), b"x")
    young = collect(store, DAY / 2)
    assert set(actions(young).values()) == {"keep"}
    done = collect(store, 2 * DAY)
    kinds = {verdict.kind: verdict.action for verdict in done.verdicts}
    assert kinds == {
        "cells": "keep",
        "half-written attempt": "delete",
        "checkpoint": "keep",
        "probe": "delete",
    }
    store.verify(kept)
    assert len(stored(store)) == 3 and stored(store, "probes/") == []
    collect(store, 7.1 * DAY)
    assert stored(store, "checkpoints/") == []


def test_a_live_run_keeps_its_unfinished_work_however_old(local_settings: StorageSettings) -> None:
    store = ArtifactStore(local_settings)
    holder = LeaseHolder(store.objects, minutes=60 * 24 * 30)
    holder.use([])
    store.objects.put_new(layout.attempt_file("x", "a" * 64, "ff" * 8, "y"), b"half")
    reasons = {verdict.kind: verdict.why for verdict in collect(store, 20 * DAY).verdicts}
    assert reasons["half-written attempt"] == "newer than the start of an active run"
    collect(store, 40 * DAY)
    assert stored(store) == [] and read_leases(store.objects) == []
    holder.end()


def test_what_was_set_aside_keeps_its_files_for_its_time(store: ArtifactStore) -> None:
    ref = build(store, "cells")
    path = path_of(store, ref)
    store.quarantine(ref, "looked odd")
    collect(store, 29 * DAY)
    assert store.objects.exists(path)
    collect(store, 31 * DAY)
    assert stored(store, "quarantine/") == []
    collect(store, 31 * DAY)
    assert stored(store) == []


FOREIGN = [
    "artifacts/.DS_Store",
    "artifacts/cells/README.md",
    "artifacts/cells/old/manifest.json",
    f"artifacts/cells/{'a' * 64}/notes/mine/x.txt",
    f"artifacts/cells/{'a' * 64}/attempts/x.txt",
    "artifacts/Cells/" + "a" * 64 + "/manifest.json",
    "checkpoints/.DS_Store",
    f"checkpoints/cells/{'a' * 64}/2",
    "quarantine/readme/me.txt",
    "probes/.DS_Store",
    "submissions/animals/notes.txt",
    "inbox-refused/.DS_Store",
    "leases/.DS_Store",
    "leases/README.json",
    "pointers/.DS_Store",
    "pointers/README.md",
]
FOLDERS = [
    "artifacts/",
    "artifacts/cells/",
    f"artifacts/cells/{'a' * 64}/",
    "leases/",
    "pointers/",
    "probes/",
]


@pytest.mark.parametrize("path", FOREIGN + FOLDERS)
def test_foreign_paths_are_told_from_ours(path: str) -> None:
    assert not layout.is_own(path)


def test_all_that_we_write_is_ours() -> None:
    place, token = ("cells", "a" * 64), "ab" * 8
    for path in (
        layout.manifest(*place),
        layout.attempt_file(*place, token, "img_emb/img_emb_0.npy"),
        *(layout.checkpoint(*place, slot) for slot in layout.SLOTS),
        layout.pointer("index-current"),
        layout.lease(token),
        layout.submission("animals", token),
        layout.refused(token, "inbox/.odd name.yaml"),
        layout.refused(token, "inbox/x.yaml") + ".reason.txt",
        layout.quarantine(*place, token, "reason.json"),
        layout.probe(token),
    ):
        assert layout.is_own(path), path


def test_what_others_have_put_into_the_store_is_left_alone_and_stops_nobody(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among them the empty objects that consoles of S3 show as folders, which not every server lists."""
    ref = build(store, "cells")
    for path in FOREIGN:
        store.objects.put_new(path, b"")
    entries = store.objects.entries

    def listed(prefix: str) -> Iterator[Entry]:
        yield from (Entry(path, 0, 0.0) for path in FOLDERS if path.startswith(prefix))
        yield from entries(prefix)

    monkeypatch.setattr(store.objects, "entries", listed)
    foreign = {*FOREIGN, *FOLDERS}
    collect(store, 98 * DAY)
    done = collect(store, 100 * DAY)
    assert not there(store, ref)
    assert {path for path in store.objects.list("") if path in foreign} >= set(FOREIGN)
    assert not any(layout.is_own(path) for path in store.objects.list(""))
    kept = [verdict.name for verdict in done.verdicts if verdict.kind == "foreign"]
    assert set(kept) == {path for path in foreign if not path.startswith(("leases", "pointers"))}
    assert {verdict.action for verdict in done.verdicts if verdict.kind == "foreign"} == {"keep"}


def test_foreign_files_are_not_taken_for_artifacts(local_settings: StorageSettings) -> None:
    store = ArtifactStore(local_settings)
    ref = build(store, "cells")
    for path in FOREIGN:
        store.objects.put_new(path, b"{}")
    assert [manifest.ref for manifest in artifacts(store, "cells")] == [ref]
    assert store.resolve(f"cells/{ref.key[:8]}") == ref


def test_two_collectors_at_once(local_settings: StorageSettings) -> None:
    store = ArtifactStore(local_settings)
    refs = [build(store, "cells", number) for number in range(3)]
    collect(store, 8 * DAY)
    condemned = GcMarks(store.objects)
    before, etag = condemned.read()
    collect(store, 10 * DAY)
    with pytest.raises(ConflictError):
        condemned.write(before, etag)
    assert not any(there(store, ref) for ref in refs)


def test_random_stores_never_lose_what_is_wanted(local_settings: StorageSettings, tmp_path: Path) -> None:
    """Whatever was made from what: all ancestors of what a pointer names stay, and the rest goes."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        store = ArtifactStore(local_settings.model_copy(update={"url": f"file://{tmp_path}/{seed}"}))
        refs: list[ArtifactRef] = []
        for number in range(14):
            few = random.choice(len(refs), min(len(refs), int(random.integers(0, 3))), replace=False)
            parents = {"from": tuple(refs[int(i)] for i in few)} if len(few) else {}
            refs.append(build(store, "step", number, **parents))
        chosen = refs[int(random.integers(14))]
        store.move_pointer("wanted", chosen, None)
        wanted = {manifest.ref for manifest in store.lineage(chosen)}
        collect(store, 8 * DAY)
        collect(store, 10 * DAY)
        assert {ref for ref in refs if there(store, ref)} == wanted


def test_leases_must_be_shorter_than_the_grace_period() -> None:
    with pytest.raises(ValueError, match="half of the grace"):
        GcSettings(grace_hours=1, lease_minutes=31)
