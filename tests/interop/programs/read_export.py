"""datasets and webdataset: what they make of an export, written to a JSON file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import datasets
import webdataset


def by_huggingface(found: Any) -> dict[str, Any]:
    label = found.features["label"]
    return {
        "types": {name: type(kind).__name__ for name, kind in found.features.items()},
        "names": label.names,
        "lines": [
            {
                "size": line["image"].size,
                "pixel": line["image"].convert("RGB").getpixel((0, 0)),
                "class": label.int2str(line["label"]),
            }
            | {name: line[name] for name in ("row", "caption", "url") if name in line}
            for line in found
        ],
    }


def by_webdataset(folder: Path) -> dict[str, Any]:
    files = sorted(str(file) for file in folder.glob("*.tar"))
    found = webdataset.WebDataset(files, shardshuffle=False).decode("pil").to_tuple("jpg", "cls", "__key__")
    lines = [{"pixel": i.convert("RGB").getpixel((0, 0)), "label": c, "row": int(k)} for i, c, k in found]
    return {"lines": lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["folder", "parquet", "imagefolder", "webdataset"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    where = {
        "folder": (str(asked.folder), {}),
        "parquet": ("parquet", {"data_files": str(asked.folder / "data" / "*.parquet")}),
        "imagefolder": ("imagefolder", {"data_dir": str(asked.folder)}),
    }
    if asked.kind == "webdataset":
        told = by_webdataset(asked.folder)
    else:
        name, more = where[asked.kind]
        cache = str(asked.out.with_suffix(""))
        told = by_huggingface(datasets.load_dataset(name, split="train", cache_dir=cache, **more))
    asked.out.write_text(json.dumps(told))


if __name__ == "__main__":
    main()
