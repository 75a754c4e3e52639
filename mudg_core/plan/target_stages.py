"""The cost of one target on a finished index: from its queries to one finetuned model, and what comes after a
model is there: the gate, the scores on evaluation images (of the model and its baseline), and the export.

`label` and `select` count what their arrays ask for; much of their time is Python's. Verdicts and scores are
some kilobytes, and not counted.
"""

from __future__ import annotations

from mudg_core.dataset.cluster_selection import IMAGES_AT_ONCE
from mudg_core.dataset.held_out import SPARES
from mudg_core.index.codes import vector_bytes
from mudg_core.plan.cost import FLOAT, HALF, Cost, product
from mudg_core.plan.workload import Tower, Workload

SAMPLE_BYTES = 4000  # of a sample in a shard beside its pixels: tar headers, caption, metadata
JPEG_BYTES_A_PIXEL = 0.5  # of a photo
HIT_BYTES = 40  # query, label, rank, row, cosine
SORT_PASSES = 10  # over the table of hits
KMEANS_ITERATIONS = 50  # at most, in the selection
MODELS = 3  # in memory at most: initial, finetuned, and one between them
ARMS = 2  # the method and its baseline


def target_costs(work: Workload) -> list[Cost]:
    """Without evaluation images nothing is scored; the gate can be disabled."""
    stages = [augment, search, label, select, fetch, finetune]
    stages += [held_out, gate] if work.settings.gate.enabled else []
    stages += [evaluation, prints, leaks, zero_shot, scores] if work.tested else []
    return [stage(work) for stage in [*stages, classifier]]


def image_bytes(work: Workload) -> float:
    """A sample of a corpus shard, roughly."""
    return SAMPLE_BYTES + JPEG_BYTES_A_PIXEL * work.settings.corpus.image_size**2


def forward(tower: Tower, count: int, batch: int) -> tuple[float, float]:
    """FLOP and memory traffic of so many images or texts; weights are read once for each batch."""
    moved_by_one = 2 * tower.layers * tower.block_bytes + FLOAT * tower.parameters / max(1, batch)
    return count * tower.flop, count * moved_by_one


def augment(work: Workload) -> Cost:
    """Adaptive: every class with every descriptor of the pool through the text tower, then the queries."""
    tower, batch = work.encoder.text, work.batch
    scored = work.pool * work.classes if work.settings.augment.method == "adaptive" else 0
    features = FLOAT * (work.queries + work.classes) * work.dim
    flop, moved = forward(tower, scored + work.queries + work.classes, batch)
    memory = FLOAT * work.encoder.parameters + batch * tower.block_bytes + features
    return Cost("augment", flop, moved, written=features, memory=memory)


def search(work: Workload) -> Cost:
    """Queries against all centroids, then against the codes of the cells they probe.

    The codes are mapped from disk, so they need no memory of their own, and are read once for all queries:
    only those of cells that some query probes, if all cells are probed alike.
    """
    probes = min(work.settings.index.probes, work.cells)
    flop, moved = product(work.queries, work.cells, work.dim)
    scanned = work.queries * probes * work.rows / work.cells
    probed_share = 1 - (1 - probes / work.cells) ** work.queries
    code = vector_bytes(work.settings.index.code, work.dim)
    centroids, table = FLOAT * work.cells * work.dim, HIT_BYTES * work.hits
    return Cost(
        "search",
        flop=flop + 2 * scanned * work.dim,
        moved=moved + scanned * code,
        read=probed_share * work.rows * code + centroids,
        written=table,
        memory=centroids + FLOAT * work.queries * work.dim + table,
    )


def label(work: Workload) -> Cost:
    """Sorting the hits; exact ranks compare every query with every candidate too."""
    table, labels = HIT_BYTES * work.hits, HIT_BYTES * work.candidates
    exact = work.settings.dataset.ranks == "exact"
    flop, moved = product(work.queries, work.candidates, work.dim) if exact else (0.0, 0.0)
    read = table + (HALF * work.candidates * work.dim if exact else 0)
    return Cost("label", flop, moved + SORT_PASSES * table, read, labels, 2 * table)


def select(work: Workload) -> Cost:
    """k-means of each class's images; a class with no more images than clusters keeps them all.

    Other methods need less. Features are read a few classes at a time.
    """
    settings = work.settings.dataset
    clustered = settings.select == "cluster" and work.candidates > work.classes * settings.per_class
    flop, moved = product(work.candidates, settings.per_class, work.dim) if clustered else (0.0, 0.0)
    features, table = work.candidates * work.dim, HIT_BYTES * work.candidates
    return Cost(
        "select",
        flop=KMEANS_ITERATIONS * flop,
        moved=KMEANS_ITERATIONS * moved + FLOAT * features,
        read=HALF * features + table,
        written=table,
        memory=FLOAT * min(work.candidates, IMAGES_AT_ONCE) * work.dim + table,
    )


def fetch(work: Workload) -> Cost:
    """The chosen images. Links that are dead and the network's speed are not known."""
    return _fetched(work, "fetch", work.picks)


def _fetched(work: Workload, stage: str, count: int, extra: tuple[float, float, float] = (0, 0, 0)) -> Cost:
    """So many images of the corpus, embedded afresh. `extra`: more FLOP, memory traffic and reading."""
    flop, moved, read = extra
    tower, batch, images = work.encoder.image, min(count, work.batch), count * image_bytes(work)
    tower_flop, tower_moved = forward(tower, count, batch)
    memory = FLOAT * work.encoder.parameters + batch * tower.block_bytes + images
    return Cost(stage, tower_flop + flop, tower_moved + moved, images + read, images, memory)


def finetune(work: Workload) -> Cost:
    """One model, roughly; a target trains one for each seed and each arm that is compared.

    Images: forward once through the frozen blocks; student and teacher through the trained ones, and back
    (twice their forward FLOP). Prompts: forward and back through all blocks, because the soft prompt lies
    before the first; weights of trained blocks once more. What takes several chunks goes forward again. The
    teacher sees the prompts once. Texts are counted at full length, although they are cut after their end.
    """
    image, text = work.student.image, work.student.text
    settings = work.settings.train.for_student(image.width)
    kept = min(settings.augmentation_limit, work.queries // work.classes)
    prompts = work.classes * (1 if settings.augmentations == "in-turn" else kept)
    first = image.layers if settings.vision_from is None else settings.vision_from
    image_blocks = max(min(settings.blocks, image.layers), image.layers - first)
    text_blocks = min(settings.blocks, text.layers)
    images_again, prompts_again = settings.batch > settings.image_chunk, prompts > settings.text_chunk
    step = settings.batch * (image.flop + (3 + images_again) * image_blocks * image.block_flop)
    step += prompts * ((2 + prompts_again) * text.flop + text_blocks * text.block_flop)
    activations = min(settings.batch, settings.image_chunk) * image_blocks * image.block_bytes
    activations += min(prompts, settings.text_chunk) * text.layers * text.block_bytes
    passed = settings.batch * (image.layers + 4 * image_blocks) * image.block_bytes
    passed += 3 * prompts * text.layers * text.block_bytes
    weights = FLOAT * work.student.parameters
    # Beside the trained blocks are their gradient, momentum and average, and the teacher's.
    trained = weights * ((image_blocks + text_blocks) / (image.layers + text.layers))
    pixels = 3 * work.picks * work.student.image_size**2
    return Cost(
        "finetune",
        flop=settings.iterations * step + work.classes * kept * text.flop,
        moved=settings.iterations * (2 * passed + 4 * weights),
        read=work.picks * image_bytes(work) + weights,
        written=weights,
        memory=weights + 4 * trained + activations + pixels,
    )


def held_out(work: Workload) -> Cost:
    """More images, fetched as the training set was; before that, those that look like one of it are left out,
    for which some are to spare."""
    spare = min(work.candidates - work.picks, SPARES * work.held_out)
    flop, moved = product(work.picks, spare, work.dim)
    return _fetched(work, "held-out", work.held_out, (flop, moved, HALF * work.dim * (work.picks + spare)))


def gate(work: Workload) -> Cost:
    """Zero-shot and each weight between: held-out images and plain prompts through another student."""
    alphas, images, weights = len(work.settings.gate.alphas), work.held_out, _weights(work)
    flop, moved = _student(work, (1 + alphas) * images, (1 + alphas) * work.classes)
    moved += alphas * MODELS * weights  # two are read, and one is written
    memory = MODELS * weights + _features(work, images) + 3 * images * work.student.image_size**2
    return Cost("gate", flop, moved, images * image_bytes(work) + 2 * weights, memory=memory)


def evaluation(work: Workload) -> Cost:
    """A copy of the images that are evaluated on, as large as the corpus' are."""
    images = work.tested * image_bytes(work)
    return Cost("evaluation", 0, images, images, images, image_bytes(work))


def prints(work: Workload) -> Cost:
    """Evaluation images through f_index."""
    batch, features = min(work.tested, work.batch), HALF * work.tested * work.dim
    flop, moved = forward(work.encoder.image, work.tested, batch)
    memory = FLOAT * work.encoder.parameters + batch * work.encoder.image.block_bytes + features
    return Cost("prints", flop, moved, work.tested * image_bytes(work), features, memory)


def leaks(work: Workload) -> Cost:
    """Each evaluation image beside every candidate."""
    flop, moved = product(work.candidates, work.tested, work.dim)
    read = HALF * (work.tested + work.candidates) * work.dim
    return Cost("leaks", flop, moved, read, memory=2 * HALF * work.tested * work.dim)


def zero_shot(work: Workload) -> Cost:
    """The student before finetuning: every evaluation image, and all prompts of the target."""
    flop, moved = _student(work, work.tested, work.queries + work.classes)
    read = work.tested * image_bytes(work) + _weights(work)
    return Cost("zero-shot", flop, moved, read, memory=_weights(work) + _features(work, work.tested))


def scores(work: Workload) -> Cost:
    """Both arms over every evaluation image, with text features that were exported; then the curve from
    initial to finetuned weights, over some of the images and all prompts."""
    settings, weights = work.settings.evaluate, _weights(work)
    points, curve = settings.alpha_points, min(settings.alpha_images, work.tested)
    images, texts = ARMS * work.tested + points * curve, points * (work.queries + work.classes)
    flop, moved = _student(work, images, texts)
    read = (ARMS * work.tested + curve) * image_bytes(work) + (ARMS + 1) * weights
    memory = (MODELS if points else 1) * weights + _features(work, work.tested)
    return Cost("scores", flop, moved + points * MODELS * weights, read, memory=memory)


def classifier(work: Workload) -> Cost:
    """The export: the weights that the gate has chosen, and text features of all prompts."""
    weights = _weights(work)
    written = weights + 2 * FLOAT * work.classes * work.student.dim
    flop, moved = _student(work, 0, work.queries + work.classes)
    memory = MODELS * weights + work.classes * work.student.text.block_bytes
    return Cost("classifier", flop, moved + MODELS * weights, 2 * weights, written, memory)


def _student(work: Workload, images: int, texts: int) -> tuple[float, float]:
    """FLOP and memory traffic of so much through the student; each class's prompts go together."""
    image_flop, image_moved = forward(work.student.image, images, work.settings.evaluate.batch_size)
    text_flop, text_moved = forward(work.student.text, texts, work.classes)
    return image_flop + text_flop, image_moved + text_moved


def _weights(work: Workload) -> int:
    return FLOAT * work.student.parameters


def _features(work: Workload, images: int) -> int:
    """A batch on its way through the student, and the features of all."""
    batch = min(images, work.settings.evaluate.batch_size)
    return batch * work.student.image.block_bytes + FLOAT * images * work.student.dim
