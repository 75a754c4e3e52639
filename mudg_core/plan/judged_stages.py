"""The cost of what comes after finetuning: the gate, the scores on evaluation images, and the handing over.

Of one model, as `finetune` is; what is scored on evaluation images is its baseline too. Verdicts and scores
are some kilobytes, and not counted.
"""

from __future__ import annotations

from mudg_core.dataset.held_out import SPARES
from mudg_core.plan.cost import FLOAT, HALF, Cost, product
from mudg_core.plan.target_stages import fetched, forward, image_bytes
from mudg_core.plan.workload import Workload

MODELS = 3  # in memory at most: initial, finetuned, and one between them
ARMS = 2  # the method and its baseline


def costs(work: Workload) -> list[Cost]:
    """Without evaluation images nothing is scored; the gate can be disabled."""
    judged = [held_out(work), gate(work)] if work.settings.gate.enabled else []
    scored = (
        [evaluation(work), prints(work), leaks(work), zero_shot(work), scores(work)] if work.tested else []
    )
    return [*judged, *scored, classifier(work)]


def held_out(work: Workload) -> Cost:
    """More images, fetched as the training set was; before that, those that look like one of it are left out,
    for which some are to spare."""
    spare = min(work.candidates - work.picks, SPARES * work.held_out)
    flop, moved = product(work.picks, spare, work.dim)
    read = HALF * work.dim * (work.picks + spare)
    return fetched(work, "held-out", work.held_out).plus(flop=flop, moved=moved, read=read)


def gate(work: Workload) -> Cost:
    """Zero-shot and each weight between: held-out images and plain prompts through another student."""
    alphas, images = len(work.settings.gate.alphas), work.held_out
    flop, moved = _student(work, (1 + alphas) * images, (1 + alphas) * work.classes)
    return Cost(
        "gate",
        flop=flop,
        moved=moved + alphas * MODELS * _weights(work),  # two are read, and one is written
        read=images * image_bytes(work) + 2 * _weights(work),
        written=0,
        memory=MODELS * _weights(work) + _held(work, images) + 3 * images * work.student.image_size**2,
        stored=0,
    )


def evaluation(work: Workload) -> Cost:
    """A copy of the images that are evaluated on, as large as the corpus' are."""
    images = work.tested * image_bytes(work)
    return Cost("evaluation", 0, images, images, images, image_bytes(work), images)


def prints(work: Workload) -> Cost:
    """Evaluation images through f_index."""
    batch, features = min(work.tested, work.batch), HALF * work.tested * work.dim
    flop, moved = forward(work.encoder.image, work.tested, batch)
    memory = FLOAT * work.encoder.parameters + batch * work.encoder.image.block_bytes + features
    return Cost("prints", flop, moved, work.tested * image_bytes(work), features, memory, features)


def leaks(work: Workload) -> Cost:
    """Each evaluation image beside every candidate."""
    flop, moved = product(work.candidates, work.tested, work.dim)
    read = HALF * (work.tested + work.candidates) * work.dim
    return Cost("leaks", flop, moved, read, 0, 2 * HALF * work.tested * work.dim, 0)


def zero_shot(work: Workload) -> Cost:
    """The student before finetuning: every evaluation image, and all prompts of the target."""
    flop, moved = _student(work, work.tested, work.queries + work.classes)
    read = work.tested * image_bytes(work) + _weights(work)
    return Cost("zero-shot", flop, moved, read, 0, _weights(work) + _held(work, work.tested), 0)


def scores(work: Workload) -> Cost:
    """Both arms over every evaluation image, with text features that were exported; then the curve from
    initial to finetuned weights, over some of the images and all prompts."""
    settings = work.settings.evaluate
    points, curve = settings.alpha_points, min(settings.alpha_images, work.tested)
    images, texts = ARMS * work.tested + points * curve, points * (work.queries + work.classes)
    flop, moved = _student(work, images, texts)
    models = MODELS if points else 1
    return Cost(
        "scores",
        flop=flop,
        moved=moved + points * MODELS * _weights(work),
        read=(ARMS * work.tested + curve) * image_bytes(work) + (ARMS + 1) * _weights(work),
        written=0,
        memory=models * _weights(work) + _held(work, work.tested),
        stored=0,
    )


def classifier(work: Workload) -> Cost:
    """What is handed over: the weights that the gate has chosen, and text features of all prompts."""
    features = 2 * FLOAT * work.classes * work.student.dim
    flop, moved = _student(work, 0, work.queries + work.classes)
    return Cost(
        "classifier",
        flop=flop,
        moved=moved + MODELS * _weights(work),
        read=2 * _weights(work),
        written=_weights(work) + features,
        memory=MODELS * _weights(work) + work.classes * work.student.text.block_bytes,
        stored=_weights(work) + features,
    )


def _student(work: Workload, images: int, texts: int) -> tuple[float, float]:
    """FLOP and memory traffic of so much through the student; each class's prompts go together."""
    seen, passed = forward(work.student.image, images, work.settings.evaluate.batch_size)
    said, moved = forward(work.student.text, texts, work.classes)
    return seen + said, passed + moved


def _weights(work: Workload) -> int:
    return FLOAT * work.student.parameters


def _held(work: Workload, images: int) -> int:
    """A batch on its way through the student, and the features of all."""
    batch = min(images, work.settings.evaluate.batch_size)
    return batch * work.student.image.block_bytes + FLOAT * images * work.student.dim
