"""Models: fed as open_clip feeds them, named by what they are, refused when they are not whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from mudg_core.encode import weights
from mudg_core.encode.models import Clip, load_clip, load_text_encoder, open_clip
from mudg_core.encode.open_clip_support import load_hub, load_timm
from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE, vision_width, weights_digest
from mudg_core.errors import ModelError
from tests.core.encode.tiny import MODEL, PREPROCESS


def noise(wide: int, high: int, mode: str = "RGB") -> Image.Image:
    """A picture with detail at every scale, so that being off by a pixel shows."""
    random = np.random.default_rng(wide * 1000 + high)
    image = Image.fromarray(random.integers(0, 255, (high, wide, 3), dtype=np.uint8))
    return image.convert(mode)


@pytest.fixture(scope="module")
def transform(tiny_folder: Path) -> Callable[[Image.Image], torch.Tensor]:
    _, _, evaluation = open_clip.create_model_and_transforms(f"local-dir:{tiny_folder}")
    return evaluation  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "size",
    [
        (64, 64),
        (128, 128),
        (50, 50),
        (100, 64),
        (64, 101),
        (37, 91),
        (200, 133),
        (133, 200),
        (65, 300),
        (97, 64),
        (103, 64),
        (64, 67),
    ],
)
def test_pixels_are_those_of_open_clip(
    size: tuple[int, int], loaded: Clip, transform: Callable[[Image.Image], torch.Tensor]
) -> None:
    image = noise(*size)
    pixels = loaded.pixels(image)
    assert (pixels.shape, pixels.dtype) == ((64, 64, 3), np.uint8)
    assert torch.allclose(loaded.normalise(pixels[None])[0], transform(image), atol=1e-6)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((64, 64), (64, 64)),
        ((32, 32), (64, 64)),
        ((200, 100), (128, 64)),
        ((100, 250), (64, 160)),
        ((640, 40), (512, 32)),  # sixteen times as long as high: half of the size that its height asks for
        ((3000, 1), (7011, 2)),
    ],
)
def test_whole_images_keep_their_edges(
    size: tuple[int, int], expected: tuple[int, int], loaded: Clip
) -> None:
    """All of the image, in the room of four squares at most."""
    image = noise(*size, "L")
    image.paste(255, (0, 0, max(1, size[0] // 8), size[1]))
    image.paste(0, (size[0] - max(1, size[0] // 8), 0, *size))
    whole = loaded.whole(image)
    assert whole.shape == (*expected[::-1], 3) and whole.dtype == np.uint8
    assert whole.size <= 3 * 4 * 64**2
    assert whole[:, 0].mean() > 250 and whole[:, -1].mean() < 5


@pytest.mark.parametrize("mode", ["L", "RGBA", "CMYK"])
def test_other_modes_are_read_as_colours(mode: str, loaded: Clip) -> None:
    image = noise(64, 64, mode)
    assert (loaded.pixels(image) == np.asarray(image.convert("RGB"))).all()


def test_normalise_by_hand(loaded: Clip) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    before = pixels.copy()
    batch = loaded.normalise(pixels)
    assert batch.shape == (2, 3, 64, 64)
    for channel in range(3):
        by_hand = (pixels[1, 5, 9, channel] / 255 - PREPROCESS["mean"][channel]) / PREPROCESS["std"][channel]
        assert batch[1, channel, 5, 9].item() == pytest.approx(by_hand, abs=1e-5)
    assert (pixels == before).all()


def test_features_are_unit_and_do_not_depend_on_the_batch(loaded: Clip) -> None:
    pixels = np.stack([loaded.pixels(noise(64 + i, 70)) for i in range(5)])
    texts = [f"a photo of number {i}" for i in range(5)]
    for whole, parts, one in (
        (loaded.encode_images(pixels), loaded.encode_images(pixels, 2), loaded.encode_images(pixels[3:4])),
        (loaded.encode_texts(texts), loaded.encode_texts(texts, 2), loaded.encode_texts(texts[3:4])),
    ):
        assert (whole.shape, whole.dtype) == ((5, loaded.dim), np.float32)
        assert np.linalg.norm(whole, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
        assert parts == pytest.approx(whole, abs=1e-5)
        assert one[0] == pytest.approx(whole[3], abs=1e-5)
    assert loaded.encode_images(pixels[:0]).shape == (0, loaded.dim)
    assert loaded.encode_texts([]).shape == (0, loaded.dim)


def test_texts_are_cut_off_after_their_end_and_nothing_changes(loaded: Clip) -> None:
    """Against open_clip's own text tower over the whole context, for texts of all lengths in any order."""
    texts = [
        "",
        "a",
        "a red boat " * 9,
        "one two three",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    ]
    with torch.inference_mode():
        whole = loaded.network.encode_text(loaded.tokens(texts), normalize=True).numpy()
    for size in (None, 1, 2, 5):
        assert loaded.encode_texts(texts, size) == pytest.approx(whole, abs=1e-6)
    assert len({loaded.encode_texts(texts).tobytes() for _ in range(2)}) == 1


def test_a_squashing_model_is_fed_as_open_clip_feeds_it(tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "copy")
    config = json.loads((folder / CONFIG_FILE).read_text())
    config["preprocess_cfg"] |= {"resize_mode": "squash", "interpolation": "bilinear"}
    (folder / CONFIG_FILE).write_text(json.dumps(config))
    _, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    clip, image = load_clip(f"local-dir:{folder}"), noise(100, 70)
    assert torch.allclose(clip.normalise(clip.pixels(image)[None])[0], transform(image), atol=1e-6)
    assert (clip.whole(image) == clip.pixels(image)).all()  # nothing is cut off as it is
    config["preprocess_cfg"]["resize_mode"] = "longest"
    (folder / CONFIG_FILE).write_text(json.dumps(config))
    with pytest.raises(ModelError, match="longest"):
        load_clip(f"local-dir:{folder}")


def test_a_tower_of_timm_is_loaded_when_a_model_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is not before: see `lean`."""
    monkeypatch.setattr(open_clip.timm_model, "timm", None)
    vision = {"timm_model_name": "test_vit", "timm_model_pretrained": False, "image_size": 160}
    config = {"model_cfg": MODEL | {"vision_cfg": vision}, "preprocess_cfg": PREPROCESS}
    load_timm(MODEL)
    assert open_clip.timm_model.timm is None
    load_timm(config["model_cfg"])
    network = open_clip.CLIP(**config["model_cfg"])
    save_file(network.state_dict(), tmp_path / WEIGHTS_FILE)
    (tmp_path / CONFIG_FILE).write_text(json.dumps(config))
    monkeypatch.setattr(open_clip.timm_model, "timm", None)
    clip = load_clip(f"local-dir:{tmp_path}")
    assert clip.image_size == 160
    assert clip.encode_images(clip.pixels(noise(160, 160))[None]).shape == (1, 16)


def test_weights_in_a_file(tmp_path: Path) -> None:
    network = open_clip.create_model("ViT-S-32-alt", pretrained=None)
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    name = f"ViT-S-32-alt/{tmp_path / 'w.safetensors'}"
    clip = load_clip(name)
    assert torch.equal(clip.network.text_projection, network.text_projection)
    assert len(weights_digest(name)) == 64 and weights.absolute(name) == name
    with pytest.raises(ModelError, match="no such file"):
        load_clip("ViT-S-32-alt/nowhere.safetensors")


@pytest.mark.parametrize("suffix", weights.PICKLES)
def test_f72_a_pickled_checkpoint_is_refused(suffix: str) -> None:
    for load in (load_clip, weights_digest):
        with pytest.raises(ModelError, match="pickled"):
            load(f"ViT-B-16/model{suffix}")


def test_models_on_disk_have_absolute_names() -> None:
    here = Path.cwd()
    assert weights.absolute("local-dir:models/a") == f"local-dir:{here}/models/a"
    assert weights.absolute("ViT-B-16/w.safetensors") == f"ViT-B-16/{here}/w.safetensors"
    for name in ("demo:index", "ViT-B-16/openai"):
        assert weights.absolute(name) == name


def test_what_a_clip_knows_of_itself(loaded: Clip) -> None:
    assert (loaded.dim, loaded.image_size) == (16, 64)
    assert (list(loaded.mean), list(loaded.std)) == (PREPROCESS["mean"], PREPROCESS["std"])
    assert not loaded.network.training


@pytest.mark.parametrize("file", [WEIGHTS_FILE, CONFIG_FILE])
def test_f54_digest_follows_every_byte(file: str, tiny_folder: Path, tmp_path: Path) -> None:
    """Also within one process: a worker outlives many changes of a folder."""
    folder = shutil.copytree(tiny_folder, tmp_path / "copy")
    name = f"local-dir:{folder}"
    before = weights_digest(name)
    assert before == weights_digest(name) == weights_digest(f"local-dir:{tiny_folder}")
    data = bytearray((folder / file).read_bytes())
    data[-2] ^= 1
    (folder / file).write_bytes(data)
    assert weights_digest(name) != before


@pytest.mark.parametrize(
    "name",
    [
        "nonexistent-arch/tag",
        "ViT-B-16",
        "ViT-B-16/nonexistent",
        "demo:nothing",
        "local-dir:/nowhere",
        "",
        "/",
        "a/",
    ],
)
def test_unknown_models(name: str) -> None:
    for load in (load_clip, weights_digest):
        with pytest.raises(ModelError) as caught:
            load(name)
        assert caught.value.where == name and caught.value.fix


def test_weights_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*args: Any, **kwargs: Any) -> str:
        raise FileNotFoundError("no route to the hub")

    monkeypatch.setattr(open_clip, "download_pretrained", offline)
    weights._downloaded.cache_clear()
    with pytest.raises(ModelError, match="no route to the hub"):
        weights_digest("ViT-B-16/openai")


def test_digest_of_a_hub_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"weights")
    monkeypatch.setattr(open_clip, "download_pretrained", lambda *args, **kwargs: str(file))
    weights._downloaded.cache_clear()
    digests = {weights_digest(name) for name in ("ViT-B-16/openai", "ViT-B-32/openai")}
    assert len(digests) == 2  # same bytes, another architecture
    weights._downloaded.cache_clear()


def test_f72_a_folder_with_pickles_only_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    shutil.copy(tiny_folder / CONFIG_FILE, tmp_path)
    network = open_clip.create_model(f"local-dir:{tiny_folder}")
    torch.save(network.state_dict(), tmp_path / "open_clip_pytorch_model.bin")
    with pytest.raises(ModelError, match=WEIGHTS_FILE):
        load_clip(f"local-dir:{tmp_path}")


def test_a_folder_without_weights_is_not_a_random_model(tiny_folder: Path, tmp_path: Path) -> None:
    shutil.copy(tiny_folder / CONFIG_FILE, tmp_path)
    with pytest.raises(ModelError, match=WEIGHTS_FILE):
        load_clip(f"local-dir:{tmp_path}")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (WEIGHTS_FILE, b""),
        (WEIGHTS_FILE, b"garbage" * 100),
        (CONFIG_FILE, b"{"),
        (CONFIG_FILE, b"{}"),
        (CONFIG_FILE, b"[]"),
    ],
)
def test_f73_malformed_files(file: str, content: bytes, tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "copy")
    (folder / file).write_bytes(content)
    with pytest.raises(ModelError) as caught:
        load_clip(f"local-dir:{folder}")
    assert caught.value.where == f"local-dir:{folder}"


def test_f73_truncated_weights(tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "copy")
    data = (folder / WEIGHTS_FILE).read_bytes()
    (folder / WEIGHTS_FILE).write_bytes(data[:-4])
    with pytest.raises(ModelError):
        load_clip(f"local-dir:{folder}")


@pytest.mark.parametrize(
    "change", [{"custom_text": True}, {"text_cfg": {"pool_type": "last", "no_causal_mask": True}}]
)
def test_other_text_towers_are_left_to_open_clip(change: dict[str, Any], tmp_path: Path) -> None:
    """Towers that are not causal, or are modules of their own, see the whole context."""
    config = {**MODEL, **change, "text_cfg": {**MODEL["text_cfg"], **change.get("text_cfg", {})}}
    kind = open_clip.CustomTextCLIP if config.pop("custom_text", False) else open_clip.CLIP
    network = kind(**config).eval()
    save_file(network.state_dict(), tmp_path / WEIGHTS_FILE)
    model = config | ({"custom_text": True} if "custom_text" in change else {})
    (tmp_path / CONFIG_FILE).write_text(json.dumps({"model_cfg": model, "preprocess_cfg": PREPROCESS}))
    clip, texts = load_clip(f"local-dir:{tmp_path}"), ["a cat", "a much longer text about a red boat"]
    with torch.inference_mode():
        whole = network.encode_text(clip.tokens(texts), normalize=True).numpy()
    assert clip.encode_texts(texts) == pytest.approx(whole, abs=1e-5)
    assert np.array_equal(load_text_encoder(clip.name).encode_texts(texts), clip.encode_texts(texts))


def test_a_text_encoder_says_the_same_without_a_vision_tower(loaded: Clip) -> None:
    texts = ["a red boat", "Möwe &amp; Meer", "a fox " * 60]
    text_only = load_text_encoder(loaded.name)
    assert np.array_equal(text_only.encode_texts(texts), loaded.encode_texts(texts))
    assert not list(text_only.network.visual.parameters())
    assert list(load_clip(loaded.name).network.visual.parameters())


def test_the_client_of_the_hub_is_loaded_before_weights_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_clip.pretrained, "_has_hf_hub", False)
    monkeypatch.setattr(open_clip.pretrained, "hf_hub_download", None)
    load_hub()
    assert open_clip.pretrained._has_hf_hub and open_clip.pretrained.hf_hub_download is not None


def test_vision_width_without_loading_anything(tiny_folder: Path, tmp_path: Path) -> None:
    assert (
        vision_width(f"local-dir:{tiny_folder}")
        == load_clip(f"local-dir:{tiny_folder}").config["model_cfg"]["vision_cfg"]["width"]
    )
    assert [vision_width(f"{name}/x") for name in ("ViT-B-16", "ViT-L-14", "ViT-H-14")] == [768, 1024, 1280]
    (tmp_path / CONFIG_FILE).write_text("[1]")
    for name in ("coca", "No-Such-Model/x", "ViT-B-16-SigLIP/webli", f"local-dir:{tmp_path}"):
        assert vision_width(name) is None


@pytest.mark.filterwarnings("ignore:.*CUDA is not available")
def test_f98_the_precision_that_keys_name_is_the_one_used(loaded: Clip) -> None:
    """`cuda mixed-fp16`; nothing has to be computed to see it."""
    context = replace(loaded, device=torch.device("cuda"))._precision()
    assert isinstance(context, torch.autocast)
    assert (context.device, context.fast_dtype) == ("cuda", torch.float16)
    assert isinstance(loaded._precision(), nullcontext)
