"""Our reader of tars finds what tarfile finds, and survives what tarfile does not."""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path

import pytest

from mudg_core.corpus.tar import CUT_SHORT, MAX_NAME_BYTES, Member, walk
from mudg_core.errors import DataError
from tests.support.hostile_tars import gnu_sparse, stopping_tails
from tests.support.raw_tar import BLOCK, END, long_name, member, pax, sealed

LIMIT = 2**20
SIZES = (0, 1, 511, 512, 513, 10_000)
NAMES = (
    "1.jpg",
    "folder/1.jpg",
    "./1.jpg",
    "a b/häuser-猫.jpg",
    "n" * 96 + ".jpg",
    "f" * 60 + "/" + "n" * 60 + ".jpg",
    "f" * 150 + "/" + "n" * 95 + ".jpg",
    "n" * 97 + ".jpg",
    "f" * 200 + "/" + "n" * 200 + ".jpg",
    "é" * 120 + ".jpg",
    "two..dots/1..jpg",
)
USTAR_NAMES = NAMES[:7]


def found(path: Path, limit: int = LIMIT) -> list[Member]:
    with path.open("rb") as stream:
        return list(walk(stream, limit))


def found_by_tarfile(path: Path) -> list[tuple[str, int, int]]:
    with tarfile.open(path, "r:", encoding="utf-8") as tar:
        return [(one.name, one.offset_data, one.size) for one in tar if one.isreg() and not one.issparse()]


def write(path: Path, form: int, names: tuple[str, ...], seed: int = 0) -> None:
    dice = random.Random(seed)
    with tarfile.open(path, "w", format=form, encoding="utf-8") as tar:
        for name in names:
            one = tarfile.TarInfo(name)
            one.mtime = dice.choice((0, 1_700_000_000, 1.5)) if form == tarfile.PAX_FORMAT else 0
            if dice.random() < 0.2:
                folder = tarfile.TarInfo(f"folder{dice.random()}")
                folder.type = tarfile.DIRTYPE
                tar.addfile(folder)
            one.size = dice.choice(SIZES)
            one.type = dice.choice((tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE))
            tar.addfile(one, io.BytesIO(dice.randbytes(one.size)))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("seed", range(8))
def test_finds_what_tarfile_finds(form: int, seed: int, tmp_path: Path) -> None:
    fitting = USTAR_NAMES if form == tarfile.USTAR_FORMAT else NAMES
    names = tuple(random.Random(seed).choices(fitting, k=20))
    write(tmp_path / "a.tar", form, names, seed)
    ours = found(tmp_path / "a.tar")
    assert all(one.refusal is None for one in ours)
    assert [one[:3] for one in ours] == found_by_tarfile(tmp_path / "a.tar")
    assert [one.name for one in ours] == list(names)


RARE = {
    "old tar without magic": member("1.jpg", b"x" * 700, b"\0", magic=b""),
    "old folder": member("folder/", b"", b"\0", magic=b"") + member("folder/1.jpg", b"x"),
    "size in spaces": member("1.jpg", b"x" * 8, size=b"         10 "),
    "size in binary": member("1.jpg", b"x" * 8, size=b"\x80" + (8).to_bytes(11, "big")),
    "size in pax": pax(size=b"700", path=b"pax.jpg") + member("1.jpg", b"x" * 700, size=0),
    "pax for all": member("x", b"20 comment=a commit\n", b"g") + member("1.jpg", b"x"),
    "long target": member("././@LongLink", b"t" * 600, b"K") + member("1.jpg", b"x") + member("2.jpg", b"y"),
    "two long names": long_name(b"n" * 700) + long_name(b"m" * 600) + member("1.jpg", b"x"),
    "long name over pax": long_name(b"n" * 300) + pax(path=b"p" * 300) + member("1.jpg", b"x"),
    "two sizes": pax(size=b"600") + pax(size=b"1200") + member("1.jpg", b"x" * 600),
    "pax over long name": pax(path=b"p" * 300) + long_name(b"n" * 300) + member("1.jpg", b"x"),
    "sum of signed bytes": member("1.jpg", b"x"),
    "sparse between": gnu_sparse("s.jpg", b"x" * 600, 3) + member("1.jpg", b"x"),
    "links between": member("l.jpg", kind=b"2", size=0, link=b"1.jpg") + member("1.jpg", b"x"),
    "link that claims data": member("l.jpg", kind=b"1", size=512, link=b"1.jpg") + member("1.jpg", b"x"),
    "folder that claims data": member("f/", kind=b"5", size=512) + member("1.jpg", b"x"),
    "unknown kind": member("u.jpg", b"x" * 600, b"Z") + member("1.jpg", b"x"),
    "behind the end": member("1.jpg", b"x") + END + member("2.jpg", b"y"),
}


@pytest.mark.parametrize("name", RARE)
def test_finds_what_tarfile_finds_in_rare_tars(name: str, tmp_path: Path) -> None:
    content = RARE[name]
    if name == "sum of signed bytes":
        header = sealed(content[:257] + b"\xe9" * 8 + content[265:BLOCK])
        total = int(header[148:154], 8) - 256 * 8
        content = header[:148] + b"%06o" % total + header[154:] + content[BLOCK:]
    (tmp_path / "a.tar").write_bytes(content + END)
    ours = [one[:3] for one in found(tmp_path / "a.tar") if one.refusal is None]
    assert ours and ours == found_by_tarfile(tmp_path / "a.tar")


@pytest.mark.parametrize("name", stopping_tails(b""))
def test_f71_nothing_behind_a_bad_place_is_believed(name: str, tmp_path: Path) -> None:
    """tarfile loops for ever on the negative size, and exhausts its stack on the long names."""
    (tmp_path / "a.tar").write_bytes(member("1.jpg", b"x") + stopping_tails(b"y" * 900)[name])
    first, last = found(tmp_path / "a.tar")
    assert first == Member("1.jpg", BLOCK, 1) and last.refusal == CUT_SHORT


def test_a_tar_cut_anywhere_gives_whole_members_only(tmp_path: Path) -> None:
    write(tmp_path / "a.tar", tarfile.PAX_FORMAT, NAMES)
    data = (tmp_path / "a.tar").read_bytes()
    whole = found(tmp_path / "a.tar")
    end = whole[-1].offset + whole[-1].size
    for length in range(BLOCK, end + 1, 97):
        (tmp_path / "cut.tar").write_bytes(data[:length])
        *good, last = found(tmp_path / "cut.tar")
        assert last.refusal == CUT_SHORT
        assert good == [one for one in whole if one.offset + one.size <= length][: len(good)]
        assert len(good) >= sum(one.offset + one.size <= length for one in whole) - 1


def test_damaged_bytes_end_the_walk_and_nothing_else(tmp_path: Path) -> None:
    dice = random.Random(3)
    write(tmp_path / "a.tar", tarfile.PAX_FORMAT, NAMES[:4])
    data = (tmp_path / "a.tar").read_bytes()
    for _ in range(500):
        hurt = bytearray(data)
        start = BLOCK * dice.randrange(len(data) // BLOCK)
        for _ in range(dice.randint(1, 3)):
            hurt[start + dice.randrange(BLOCK)] = dice.randrange(256)
        (tmp_path / "hurt.tar").write_bytes(
            bytes(hurt[:start]) + sealed(bytes(hurt[start : start + BLOCK])) + bytes(hurt[start + BLOCK :])
        )
        for one in found(tmp_path / "hurt.tar"):
            assert one.refusal is not None or one.offset + one.size <= len(data)


@pytest.mark.parametrize("content", [b"", b"short", b"not a tar at all" * 100, b"\x1f\x8b" + bytes(1000)])
def test_what_is_no_tar_is_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(DataError, match="not a plain tar"):
        found(tmp_path / "a.tar")


def test_limits_hold_to_the_byte(tmp_path: Path) -> None:
    names = [b"n" * MAX_NAME_BYTES, b"n" * (MAX_NAME_BYTES + 1)]
    (tmp_path / "a.tar").write_bytes(
        b"".join(long_name(name) + member("n", b"x" * 100) for name in names) + END
    )
    assert [one.refusal for one in found(tmp_path / "a.tar")] == [None, "tar: name too long"]
    assert [one.refusal for one in found(tmp_path / "a.tar", 99)] == ["tar: too large", "tar: name too long"]
