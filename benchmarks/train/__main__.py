"""`make bench-train`: finetuning beside a naive loop and at the paper's size, and prediction.

python -m benchmarks.train [steps] [memory] [real] [predict] [--tiny]

Without names all parts run (about half an hour on two cores, which nothing else may use). Figures are
kept in benchmarks/results/train.json, part by part with the commit they were measured at; the last line
printed is one JSON object with all of them. `--tiny` tries everything once, and keeps nothing.

  steps   CPU time of a naive step over one of ours, one thread, taking turns: the demo's student, a ViT-B-32
  memory  peak memory above the loaded model, ours over naive, each in a process of its own
  real    one step of a ViT-B-16 at the paper's settings, with 1,600 prompts: seconds and peak memory
  predict `mudg predict` on files over bare forward passes: a ViT-B-32
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.parts import Found, kept_as, parser_of, run_parts
from benchmarks.train.case import DEMO, PAPER, VIT, Case
from benchmarks.train.once import measured


@dataclass(frozen=True)
class Sizes:
    steps: int = 10
    rounds: int = 5
    large: Case = VIT
    large_steps: int = 1
    large_rounds: int = 3
    real: Case = PAPER
    images: int = 256
    photos: int = 64
    predict_rounds: int = 3
    predictor: str | None = None  # a ViT-B-32 with random weights


SMALL = Case("demo:index", classes=4, augmentations=2, batch=8, image_chunk=4, text_chunk=3)
TINY = Sizes(
    steps=1,
    rounds=1,
    large=SMALL,
    large_rounds=1,
    real=SMALL,
    images=8,
    photos=2,
    predict_rounds=1,
    predictor="demo:student",
)


def main() -> None:
    asked = parser_of(__doc__, PARTS).parse_args()
    sizes = TINY if asked.tiny else Sizes()
    run_parts(asked.parts or PARTS, lambda name: PARTS[name](sizes), kept_as("train", tiny=asked.tiny))


def steps(sizes: Sizes) -> Found:
    from benchmarks.train.sides import take_turns

    ratio, demo = take_turns(DEMO, sizes.steps, sizes.rounds)
    large_ratio, large = take_turns(sizes.large, sizes.large_steps, sizes.large_rounds)
    line = {"step_ratio_naive": ratio, "step_ratio_naive_vit_b_32": large_ratio}
    return line, {"demo": demo, "vit_b_32": large}


def memory(sizes: Sizes) -> Found:
    cases = {"demo": DEMO, "vit_b_32": sizes.large}
    detail = {
        name: {side: measured(side, case, 2) for side in ("ours", "naive")} for name, case in cases.items()
    }
    ratios = {name: sides["ours"]["extra_gb"] / sides["naive"]["extra_gb"] for name, sides in detail.items()}
    return {"peak_ratio_naive": ratios["demo"], "peak_ratio_naive_vit_b_32": ratios["vit_b_32"]}, detail


def real(sizes: Sizes) -> Found:
    found = measured("ours", sizes.real, 1)
    return {"real_step_seconds": found["seconds"][0], "real_peak_gb": found["peak_gb"]}, found


def predict(sizes: Sizes) -> Found:
    from benchmarks.train.predict import measure

    found = measure(sizes.images, sizes.photos, sizes.predict_rounds, sizes.predictor)
    return {"predict_over_raw": found["predict_over_raw"]}, dict(found)


PARTS: dict[str, Callable[[Sizes], Found]] = {
    "steps": steps,
    "memory": memory,
    "real": real,
    "predict": predict,
}

if __name__ == "__main__":
    main()
