"""The Python API, as the notebook in examples/ uses it: in this process, without a server."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

import mudg
from mudg_core.corpus.demo.targets import TARGETS
from tasks.executors.in_process import InProcess
from tasks.run import executing

NOTEBOOK = Path(__file__).parents[2] / "examples/quick_start.ipynb"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the cells of the notebook have left, run from top to bottom in a folder of their own."""
    folder = tmp_path_factory.mktemp("notebook")
    names: dict[str, Any] = {"folder_of_test": folder}
    with chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUDG_COMPUTE__EXECUTOR", "in-process")
        for cell in json.loads(NOTEBOOK.read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    return names


def test_a_search_gives_hits_with_images(ran: dict[str, Any]) -> None:
    hits = ran["hits"]
    assert isinstance(hits, mudg.Hits) and len(hits) == 12 and isinstance(hits[0], mudg.Hit)
    assert [hit.cosine for hit in hits] == sorted((hit.cosine for hit in hits), reverse=True)
    assert set(hits.images()) == {hit.row for hit in hits}
    assert (ran["folder_of_test"] / "cats.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_made_shows_itself_in_a_notebook(ran: dict[str, Any]) -> None:
    for shown, pictures in ((ran["hits"], 12), (ran["classifier"].dataset, 1), (ran["classifier"], 1)):
        html = shown._repr_html_()
        assert (
            html.count('src="data:image/jpeg;base64,') >= pictures and "http" not in html.split("<figcap")[0]
        )


def test_text_of_strangers_is_text(ran: dict[str, Any]) -> None:
    from mudg.pictures import gallery

    html = gallery("<b>", [(None, "<script>alert(1)</script>")])
    assert "<script>" not in html and "&lt;script&gt;" in html and "<b>&lt;b&gt;" in html


def test_a_classifier_knows_how_good_it_is_and_goes_on_as_a_folder(ran: dict[str, Any]) -> None:
    classifier = ran["classifier"]
    assert set(classifier.accuracy) == {"zero_shot", "nearest_neighbours", "mudg"}
    assert classifier.report.read_text().startswith("<!")
    assert classifier.classes == mudg.load(ran["folder"]).classes == TARGETS[0].classes
    images = ran["folder_of_test"] / "training-images"
    found = mudg.load(ran["folder"]).predict(images, top=2)
    assert len(found) == len(classifier.dataset) > 0
    assert all(len(one.classes) == 2 and one.label in classifier.classes and not one.error for one in found)
    assert found == classifier.predict([images], top=2)


def test_what_was_made_is_found_again(ran: dict[str, Any]) -> None:
    with chdir(ran["folder_of_test"]):
        again = mudg.open("pool")
        assert again.index.version == ran["index"].version and len(again.index) == len(ran["index"]) > 500
        assert repr(again).startswith("Store('file://")
        with executing(InProcess()), pytest.raises(mudg.MudgError):
            mudg.open("elsewhere").index.search("a cat")


def test_mistakes_are_errors_of_ours(ran: dict[str, Any]) -> None:
    with chdir(ran["folder_of_test"]):
        store = mudg.open("pool")
        for words in ("", " ", "x" * 2000):
            with pytest.raises(mudg.MudgError, match="empty or longer"):
                store.index.search(words)
        with pytest.raises(mudg.MudgError, match="at least 2"):
            store.classify(["shoe"])
        with pytest.raises(mudg.MudgError, match="did you mean evaluation"):
            store.classify(["shoe", "boot"], evalation="x")
        with pytest.raises(mudg.MudgError, match="BOOT"):
            store.classify(["boot", "BOOT"])


@pytest.mark.parametrize("name", mudg.__all__)
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(mudg, name)
    assert name == "__version__" or found.__doc__
    assert name in dir(mudg)


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = mudg.nonsense


HEAVY = ("prefect", "distributed", "dask", "torch", "sklearn")


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("import mudg", HEAVY),
        ("import mudg.cli.app", HEAVY),
        ("import mudg; mudg.open", ("prefect", "distributed", "dask", "torch")),
        ("import mudg.search, mudg_core.encode.models", ("prefect", "distributed", "dask", "sklearn")),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(code: str, missing: tuple[str, ...]) -> None:
    look = f"import sys; {code}; print([name for name in {missing!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"
