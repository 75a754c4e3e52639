"""Costs of one target, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mudg_core.plan.target_stages import (
    augment,
    classifier,
    evaluation,
    fetch,
    finetune,
    gate,
    held_out,
    label,
    leaks,
    prints,
    scores,
    search,
    select,
    zero_shot,
)
from tests.core.plan.making import paper, small


def test_search_by_hand() -> None:
    """160 queries against 10 centroids, then against 2 cells of 100 rows each; flat codes of 520 B."""
    made = search(small())
    assert made.flop == 2 * 160 * (10 + 2 * 100) * 128
    assert made.read == pytest.approx(1000 * 520 + 10 * 512)  # so many queries read every cell
    assert made.written == 160 * 64 * 40


def test_search_reads_only_the_cells_probed() -> None:
    """One query, two cells of ten."""
    one_query = replace(small(augment={"method": "none"}), queries=1)
    assert search(one_query).read == pytest.approx(200 * 520 + 10 * 512)


def test_more_probes_than_cells_read_the_index_once() -> None:
    made = search(small(index={"probes": 1000}))
    assert made.flop == 2 * 160 * (10 + 1000) * 128
    assert made.read == 1000 * 520 + 10 * 512


def test_the_papers_search() -> None:
    """16,000 x (131072 + 16 x 16555.8) x 768 x 2."""
    assert search(paper()).flop == pytest.approx(9.731e12, rel=1e-3)


def test_augment_reads_the_pool_only_when_it_chooses() -> None:
    """1000 classes x 4227 descriptors, and the 16,000 queries and 1000 plain prompts."""
    text = 13_299_683_328
    assert augment(paper()).flop == (4_227_000 + 16_000 + 1_000) * text
    plain = small(augment={"method": "none"})
    assert augment(plain).flop == (10 + 10) * plain.encoder.text.flop


def test_select_clusters_only_what_is_more_than_asked_for() -> None:
    """160 x 64 hits are more than there are rows: 1000 images of ten classes; 16 or 100 kept of each."""
    assert select(small()).flop == 50 * 2 * 1000 * 16 * 128
    assert select(small(dataset={"per_class": 100})).flop == 0
    assert select(small(dataset={"select": "nearest"})).flop == 0


def test_select_reads_a_few_classes_at_a_time() -> None:
    """1000 images fit at once; of the paper's 1,024,000 there are 2^14 at a time, beside their table."""
    assert select(small()).memory == 1000 * (4 * 128 + 40)
    assert select(paper()).memory == 2**14 * 4 * 768 + 1_024_000 * 40


def test_label_has_no_arithmetic_unless_ranks_are_exact() -> None:
    """Then 160 queries are compared with 1000 candidates, read in half precision."""
    made = label(paper())
    assert (made.flop, made.read) == (0, 16_000 * 64 * 40)
    exact = label(small(dataset={"ranks": "exact"}))
    assert (exact.flop, exact.read) == (2 * 160 * 1000 * 128, 160 * 64 * 40 + 2 * 1000 * 128)


def test_fetch_embeds_the_papers_96_000_images() -> None:
    assert fetch(paper()).flop == 96_000 * 162_025_537_536


WHOLE = {"image_chunk": 128, "text_chunk": 160}


def test_finetune_grows_with_what_it_trains() -> None:
    """Another trained block costs teacher and backward pass (twice the forward) for images, and the gradient
    of its weights for prompts."""
    three, four = (finetune(small(train=WHOLE | {"blocks": n, "iterations": 1})) for n in (3, 4))
    work = small()
    image, text = work.student.image.block_flop, work.student.text.block_flop
    assert four.flop - three.flop == 128 * 3 * image + 160 * text
    once, twice = (finetune(small(train={"iterations": n})) for n in (1, 2))
    teacher = 160 * work.student.text.flop
    assert twice.flop - teacher == 2 * (once.flop - teacher)


def test_chunks_go_forward_again_and_need_less_memory() -> None:
    whole = finetune(small(train=WHOLE | {"iterations": 1}))
    chunks = finetune(small(train={"image_chunk": 127, "text_chunk": 159, "iterations": 1}))
    image, text = small().student.image, small().student.text
    assert chunks.flop - whole.flop == 128 * 3 * image.block_flop + 160 * text.flop
    assert whole.memory - chunks.memory == 3 * image.block_bytes + text.layers * text.block_bytes


def test_vision_blocks_from_one_on() -> None:
    """The demo's student has five."""
    few, same, more = (finetune(small(train={"vision_from": n})).flop for n in (None, 2, 1))
    assert few == same < more


def test_augmentations_in_turn_need_one_prompt_a_class() -> None:
    every = finetune(small(train=WHOLE | {"iterations": 100}))
    in_turn = finetune(small(train=WHOLE | {"iterations": 100, "augmentations": "in-turn"}))
    text = small().student.text
    assert every.flop - in_turn.flop == 100 * 150 * (2 * text.flop + 3 * text.block_flop)
    assert in_turn.memory < every.memory


def test_the_gate_takes_what_training_leaves() -> None:
    """Of 1000 candidates of ten classes 160 are trained on, and twelve a class held out; or none is left."""
    assert small().held_out == 120
    assert small(gate={"images": 30}).held_out == 30 and small(gate={"images": 1}).held_out == 10
    none = small(dataset={"per_class": 100})
    assert none.held_out == 0 and held_out(none).flop == 0
    assert paper().held_out == 2000  # two of each of 1000 classes


def test_held_out_images_are_fetched_as_others_are() -> None:
    """160 images of the training set beside 480 that may be held out, to find copies."""
    work, made = small(), held_out(small())
    assert made.flop == 120 * work.encoder.image.flop + 2 * 160 * 480 * 128
    assert made.written == pytest.approx(fetch(work).written * 120 / 160)


def test_gate_by_hand() -> None:
    """Zero-shot and four weights: 120 images and ten prompts each."""
    work, made = small(), gate(small())
    assert made.flop == 5 * (120 * work.student.image.flop + 10 * work.student.text.flop)
    one = gate(small(gate={"alphas": [1.0]}))
    assert one.flop * 5 == made.flop * 2 and one.memory == made.memory
    assert made.memory > 3 * 4 * work.student.parameters and made.written == 0


def test_evaluation_images_are_copied_compared_and_scored() -> None:
    """20 images of each of ten classes; 160 queries and ten plain prompts."""
    work = small()
    image, text = work.student.image.flop, work.student.text.flop
    assert work.tested == 200 and evaluation(work).written == pytest.approx(fetch(work).written * 200 / 160)
    assert prints(work).flop == 200 * work.encoder.image.flop
    assert leaks(work).flop == 2 * 1000 * 200 * 128
    assert zero_shot(work).flop == 200 * image + 170 * text
    assert scores(work).flop == (2 + 5) * 200 * image + 5 * 170 * text  # two arms, and a curve of five points
    plain = small(evaluate={"alpha_points": 0})
    assert scores(plain).flop == 2 * 200 * image and scores(plain).memory < scores(work).memory


def test_the_curve_takes_some_of_the_images() -> None:
    few, many = (scores(replace(small(), tested=count)).flop for count in (512, 1512))
    assert many - few == 2 * 1000 * small().student.image.flop


def test_a_classifier_is_a_model_and_its_text_features() -> None:
    work, made = small(), classifier(small())
    assert made.flop == 170 * work.student.text.flop
    assert made.written == 4 * (work.student.parameters + 2 * 10 * work.student.dim)
