"""Miniature datasets, laid out as the real ones are."""

from __future__ import annotations

import io
import json
import zlib
from pathlib import Path

from PIL import Image

WNIDS = ("n01440764", "n01443537", "n03773504", "n04008634", "n04355933", "n04356056")
WORDNET = "".join(
    f"{number} {name}\n"
    for number, name in zip(
        WNIDS, ("tench", "gold fish", "missile", "missile", "sunglasses", "sunglasses"), strict=True
    )
)
TOLD_APART = ["tench", "gold fish", "missile", "projectile", "sunglass", "sunglasses"]


def picture(level: int) -> bytes:
    stored = io.BytesIO()
    Image.new("RGB", (4, 4), (level % 256, level // 256 % 256, level // 65_536 % 256)).save(stored, "PNG")
    return stored.getvalue()


def put(root: Path, *names: str) -> Path:
    """Small pictures, no two alike, whatever their suffix says."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(picture(zlib.crc32(name.encode())))
    return root


def write(root: Path, name: str, content: str) -> Path:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content)
    return root


def zhou(root: Path, folder: str, name: str = "split_zhou_Pets.json") -> Path:
    """Three classes; `folder` is where their images lie, as it differs from dataset to dataset."""
    parts = {
        "train": [["fox/1.jpg", 1, "red_fox"], ["cat/1.jpg", 0, "cat"], ["hen/1.jpg", 2, "Hen"]],
        "val": [["cat/2.jpg", 0, "cat"]],
        "test": [["hen/3.jpg", 2, "Hen"], ["fox/3.jpg", 1, "red_fox"], ["fox/4.jpg", 1, "red_fox"]],
    }
    put(root / folder, *(path for items in parts.values() for path, _, _ in items))
    return write(root, name, json.dumps(parts))


def fgvc(root: Path, inside: str = "") -> Path:
    base = root / inside
    put(base / "images", "0034309.jpg", "1514522.jpg", "0000007.jpg", "0000008.jpg")
    write(base, "variants.txt", "707-320\nF/A-18\nFalcon 2000\n")
    write(base, "images_variant_test.txt", "1514522 F/A-18\n0034309 707-320\n")
    write(base, "images_variant_train.txt", "0000007 Falcon 2000\n")
    write(base, "images_variant_trainval.txt", "0000007 Falcon 2000\n0000008 707-320\n")
    return root


def imagenet(root: Path, val: str, flat: bool = True) -> Path:
    write(root, "classnames.txt", WORDNET)
    write(
        root,
        "LOC_val_solution.csv",
        "ImageId,PredictionString\n"
        f"ILSVRC2012_val_00000001,{WNIDS[3]} 85 1 499 272 \n"
        f"ILSVRC2012_val_00000002,{WNIDS[0]} 1 2 3 4 {WNIDS[0]} 5 6 7 8 \n",
    )
    for number, wnid in ((1, WNIDS[3]), (2, WNIDS[0])):
        inside = "" if flat else f"{wnid}/"
        put(root / val, f"{inside}ILSVRC2012_val_0000000{number}.JPEG")
    put((root / val).parent / "train", f"{WNIDS[0]}/x.JPEG", f"{WNIDS[5]}/y.JPEG")
    return root
