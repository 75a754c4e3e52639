"""The cost of one target on a finished index: augment, search, label, select, fetch, finetune. What comes
after a model is there is in `judged_stages.py`.

`label` and `select` count what their arrays ask for; much of their time is Python's.
"""

from __future__ import annotations

from mudg_core.dataset.cluster_selection import IMAGES_AT_ONCE
from mudg_core.index.codes import vector_bytes
from mudg_core.plan.cost import FLOAT, HALF, Cost, product
from mudg_core.plan.towers import Tower
from mudg_core.plan.workload import Workload

SAMPLE_BYTES = 4000  # of a sample in a shard beside its pixels: tar headers, caption, metadata
JPEG_BYTES_A_PIXEL = 0.5  # of a photo
HIT_BYTES = 40  # query, label, rank, row, cosine
SORT_PASSES = 10  # over the table of hits
KMEANS_ITERATIONS = 50  # at most, in the selection


def costs(work: Workload) -> list[Cost]:
    return [augment(work), search(work), label(work), select(work), fetch(work), finetune(work)]


def image_bytes(work: Workload) -> float:
    """A sample of a corpus shard, roughly."""
    return SAMPLE_BYTES + JPEG_BYTES_A_PIXEL * work.settings.corpus.image_size**2


def forward(tower: Tower, count: int, batch: int) -> tuple[float, float]:
    """FLOP and memory traffic of so many images or texts; weights are read once for each batch."""
    each = 2 * tower.layers * tower.block_bytes + FLOAT * tower.parameters / max(1, batch)
    return count * tower.flop, count * each


def augment(work: Workload) -> Cost:
    """Adaptive: every class with every descriptor of the pool through the text tower, then the queries."""
    tower, batch = work.encoder.text, work.batch
    scored = work.pool * work.classes if work.settings.augment.method == "adaptive" else 0
    texts = scored + work.queries + work.classes
    features = FLOAT * (work.queries + work.classes) * work.dim
    flop, moved = forward(tower, texts, batch)
    return Cost(
        "augment",
        flop=flop,
        moved=moved,
        read=0,
        written=features,
        memory=FLOAT * work.encoder.parameters + batch * tower.block_bytes + features,
        stored=features,
    )


def search(work: Workload) -> Cost:
    """Queries against all centroids, then against the codes of the cells they probe.

    The codes are mapped from disk, so they need no memory of their own, and are read once for all queries:
    only those of cells that some query probes, if all cells are probed alike.
    """
    probes = min(work.settings.index.probes, work.cells)
    coarse, moved = product(work.queries, work.cells, work.dim)
    scanned = work.queries * probes * work.rows / work.cells
    probed = 1 - (1 - probes / work.cells) ** work.queries
    code = vector_bytes(work.settings.index.code, work.dim)
    centroids = FLOAT * work.cells * work.dim
    touched = probed * work.rows * code + centroids
    return Cost(
        "search",
        flop=coarse + 2 * scanned * work.dim,
        moved=moved + scanned * code,
        read=touched,
        written=HIT_BYTES * work.hits,
        memory=centroids + FLOAT * work.queries * work.dim + HIT_BYTES * work.hits,
        stored=HIT_BYTES * work.hits,
    )


def label(work: Workload) -> Cost:
    """Sorting the hits; exact ranks compare every query with every candidate too."""
    table = HIT_BYTES * work.hits
    labels = HIT_BYTES * work.candidates
    exact = work.settings.dataset.ranks == "exact"
    flop, moved = product(work.queries, work.candidates, work.dim) if exact else (0.0, 0.0)
    read = table + (HALF * work.candidates * work.dim if exact else 0)
    return Cost("label", flop, moved + SORT_PASSES * table, read, labels, 2 * table, labels)


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
        stored=table,
    )


def fetch(work: Workload) -> Cost:
    """The chosen images. Links that are dead and the network's speed are not known."""
    return fetched(work, "fetch", work.picks)


def fetched(work: Workload, stage: str, count: int) -> Cost:
    """So many images of the corpus, embedded afresh."""
    tower, batch = work.encoder.image, min(count, work.batch)
    images = count * image_bytes(work)
    flop, moved = forward(tower, count, batch)
    return Cost(
        stage,
        flop=flop,
        moved=moved,
        read=images,
        written=images,
        memory=FLOAT * work.encoder.parameters + batch * tower.block_bytes + images,
        stored=images,
    )


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
    image_blocks, text_blocks = _trained_blocks(work)
    images_again, prompts_again = settings.batch > settings.image_chunk, prompts > settings.text_chunk
    step = settings.batch * (image.flop + (3 + images_again) * image_blocks * image.block_flop)
    step += prompts * ((2 + prompts_again) * text.flop + text_blocks * text.block_flop)
    activations = min(settings.batch, settings.image_chunk) * image_blocks * image.block_bytes
    activations += min(prompts, settings.text_chunk) * text.layers * text.block_bytes
    passed = settings.batch * (image.layers + 4 * image_blocks) * image.block_bytes
    passed += 3 * prompts * text.layers * text.block_bytes
    weights, trained = FLOAT * work.student.parameters, FLOAT * work.student.parameters * _trained_share(work)
    pixels = 3 * work.picks * work.student.image_size**2
    return Cost(
        "finetune",
        flop=settings.iterations * step + work.classes * kept * text.flop,
        moved=settings.iterations * (2 * passed + 4 * weights),
        read=work.picks * image_bytes(work) + weights,
        written=weights,
        memory=weights + 4 * trained + activations + pixels,
        stored=weights,
    )


def _trained_blocks(work: Workload) -> tuple[int, int]:
    """Of the vision and the text tower."""
    settings, image, text = work.settings.train, work.student.image, work.student.text
    since = image.layers if settings.vision_from is None else settings.vision_from
    vision = max(min(settings.blocks, image.layers), image.layers - since)
    return vision, min(settings.blocks, text.layers)


def _trained_share(work: Workload) -> float:
    """Of the student's blocks: beside them are their gradient, momentum and average, and the teacher's."""
    return sum(_trained_blocks(work)) / (work.student.image.layers + work.student.text.layers)
