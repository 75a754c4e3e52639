"""Members of tars made to hurt, each sample with the reason for which it is refused."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.raw_tar import BLOCK, END, long_name, member, padded, pax, sealed

OUTSIDE = "tar: leads out of the shard"


class TarCase(NamedTuple):
    """Members that make one sample."""

    key: str
    data: bytes
    reason: str


def tar_cases(image: bytes) -> list[TarCase]:
    return _bad_names(image) + _bad_kinds(image) + _bad_contents(image)


def _bad_names(image: bytes) -> list[TarCase]:
    outside = [
        ("/etc/cron.d/evil", member("/etc/cron.d/evil.jpg", image)),
        ("../../evil", member("../../evil.jpg", image)),
        ("ok/../../evil", member("ok/../../evil.jpg", image)),
        ("", member("..\\evil.jpg", image)),  # a key ends at the first dot of a file name
        ("../long", pax(path=b"../long.jpg") + member("harmless.jpg", image)),
        ("../gnu", long_name(b"../gnu.jpg") + member("harmless.jpg", image)),
        ("nul ", pax(path=b"nul\0.jpg") + member("harmless.jpg", image)),
    ]
    return [TarCase(key, data, OUTSIDE) for key, data in outside] + [
        TarCase("not�", member(b"not\xff.jpg", image), "tar: name not UTF-8"),
        TarCase("n" * 100, long_name(b"n" * 10_000) + member("n.jpg", image), "tar: name too long"),
    ]


def _bad_kinds(image: bytes) -> list[TarCase]:
    made = {
        "symlink": (member("symlink.jpg", kind=b"2", link=b"/etc/passwd"), "tar: link"),
        "hardlink": (member("hardlink.jpg", kind=b"1", link=b"good0.jpg"), "tar: link"),
        "character": (member("character.jpg", kind=b"3"), "tar: device"),
        "disk": (member("disk.jpg", kind=b"4"), "tar: device"),
        "fifo": (member("fifo.jpg", kind=b"6"), "tar: device"),
        "volume": (member("volume.jpg", image, kind=b"V"), "tar: special file"),
        "gnusparse": (gnu_sparse("gnusparse.jpg", image), "tar: sparse file"),
        "sparse": (
            pax(GNU__sparse__major=b"1", GNU__sparse__name=b"sparse.jpg") + member("x.jpg", image),
            "tar: sparse file",
        ),
        "textlink": (
            member("textlink.jpg", image)
            + member("textlink.txt", kind=b"2", link=b"x")
            + member("textlink.fifo", kind=b"6"),
            "tar: link",
        ),
    }
    return [TarCase(key, *rest) for key, rest in made.items()]


def _bad_contents(image: bytes) -> list[TarCase]:
    def with_text(key: str, suffix: str, content: bytes, reason: str) -> TarCase:
        return TarCase(key, member(f"{key}.jpg", image) + member(f"{key}.{suffix}", content), reason)

    return [
        with_text("latin", "txt", "Häuser".encode("latin-1"), "text: not UTF-8"),
        with_text("latinjson", "json", '{"caption": "Häuser"}'.encode("latin-1"), "text: not UTF-8"),
        with_text("half", "json", rb'{"caption": "\ud800"}', "text: not UTF-8"),
        with_text("halfurl", "json", rb'{"url": "\udfff"}', "text: not UTF-8"),
        with_text("list", "json", b"[1]", "text: not JSON"),
        with_text("tornjson", "json", b'{"url": "x', "text: not JSON"),
        with_text("deep", "json", b"[" * 100_000, "text: not JSON"),
        with_text("digits", "json", b'{"width": ' + b"9" * 5000 + b"}", "text: not JSON"),
        with_text("novel", "txt", b"a" * (2**16 + 1), "text: too long"),
        with_text("noveljson", "json", b'{"caption": "' + b"a" * (2**16 + 1) + b'"}', "text: too long"),
        with_text("facts", "json", b'{"x": "' + b"a" * 2**20 + b'"}', "text: too long"),
        with_text("twice", "JPG", image, "tar: member twice"),
        TarCase("pictureless", member("pictureless.txt", b"a caption"), "image: missing"),
        TarCase(
            "crowd",
            b"".join(member(f"crowd.{number}", b"x") for number in range(65)),
            "tar: too many members",
        ),
    ]


def stopping_tails(image: bytes) -> dict[str, bytes]:
    """Ends of a tar that nothing can be trusted behind; a careless reader hangs, dies or fills its memory."""
    negative = b"\xff" + (-512 % 256**11).to_bytes(11, "big")
    whole = member("torn.jpg", image)
    return {
        "nothing": b"",
        "half a header": whole[:300],
        "half a picture": whole[: len(whole) // 2],
        "damaged header": whole.replace(b"torn", b"tarn", 1) + END,
        "negative size": member("torn.jpg", size=negative) + END,
        "signed size": member("torn.jpg", size=b"-0000001000\0") + END,
        "size beyond all disks": member("torn.jpg", size=b"\x80" + b"\xff" * 11) + END,
        "pax size beyond the end": pax(size=b"9" * 19) + whole + END,
        "pax size of no sense": pax(size=b"-512") + whole + END,
        "pax of digits": member("x", b"1" * 60_000, b"x") + whole + END,
        "pax of length zero": member("x", b"0 path=a\n", b"x") + whole + END,
        "pax size of many digits": pax(size=b"9" * 5000) + whole + END,
        "pax of two megabytes": pax(comment=b"c" * 2**21) + whole + END,
        "name beyond all disks": member("x", b"name", b"L", size=b"\x80" + b"\xff" * 11) + whole + END,
        "endless pax": member("x", b"", b"x", size=2**33) + whole + END,
        "long names without end": long_name(b"x") * 3000,
        "sparse map without end": gnu_sparse("torn.jpg", b"", 10)[: -2 * BLOCK],
    }


def gnu_sparse(name: str, content: bytes, maps: int = 2) -> bytes:
    """GNU's sparse file with more of its map in blocks behind the header."""
    header = bytearray(member(name, kind=b"S", size=len(content), magic=b"ustar  \0"))
    header[482] = maps > 0
    more = b"".join(bytes(504) + bytes([number + 1 < maps]) + bytes(7) for number in range(maps))
    return sealed(bytes(header)) + more + padded(content)
