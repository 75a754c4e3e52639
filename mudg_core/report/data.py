"""What the report shows, as plain frozen values.

The report is a pure function of these classes, so it can be tested without a model or a store, and so that
whoever gathers the numbers (a Prefect task, a notebook) needs to know nothing about HTML.
"""

from dataclasses import dataclass

from mudg_core.dataset.image_map import ClassMap
from mudg_core.dataset.pseudo_labels import Hubness
from mudg_core.dataset.warning import TargetWarning
from mudg_core.evaluate.gate import Verdict
from mudg_core.evaluate.measures import Calibration


@dataclass(frozen=True)
class GalleryImage:
    """One retrieved image with the reason it is, or is not, in the training set."""

    image: bytes  # JPEG; may be empty, for a dead link
    label: int
    row: int
    query: str
    rank: int
    cosine: float
    fresh_cosine: float | None
    outcome: str  # "chosen" | "dead link" | "unlike its query" | "unreadable image" | "not needed"
    url: str
    caption: str
    detail: str = ""  # more exactly, where it is known: "HTTP 404"


@dataclass(frozen=True)
class Descriptor:
    """One candidate query augmentation; a lower loss is better."""

    text: str
    loss: int
    rise: float
    chosen: bool


@dataclass(frozen=True)
class DomainScores:
    """Accuracy in percent: mean and standard deviation over seeds, and the mean of each domain."""

    mean: float
    std: float
    domains: dict[str, float]


@dataclass(frozen=True)
class ConfusedPair:
    """Images of one class that are taken for another, as a share of the first in percent, mean over seeds.
    `before` is the share of the student before finetuning; none if it is too rare to be listed."""

    truth: int
    predicted: int
    images: float
    share: float
    before: float | None


@dataclass(frozen=True)
class AlphaPoint:
    """Accuracy in percent at one alpha; the deviation is over seeds, with a single prompt."""

    alpha: float
    single: float
    averaged: float
    std: float


@dataclass(frozen=True)
class ArmMeasures:
    """Of one arm with a single prompt, in percent."""

    macro: float
    top5: float | None
    calibration: Calibration


@dataclass(frozen=True)
class Measures:
    arms: dict[str, ArmMeasures]
    confusions: tuple[ConfusedPair, ...]  # of the method, the most frequent first
    alpha: tuple[AlphaPoint, ...]  # may be empty
    alpha_images: int


@dataclass(frozen=True)
class TargetReport:
    """Everything known about one classifier, from its class names to its accuracy."""

    name: str
    description: str
    classes: tuple[str, ...]
    template: str
    seeds: tuple[int, ...]
    scores: dict[str, DomainScores]  # by arm, see ARMS in words.py; empty without evaluation data
    class_accuracy: dict[str, tuple[float, ...]]  # arm -> percent for each class; may be empty
    descriptors: tuple[Descriptor, ...]  # the scored pool, best first
    labels_before: tuple[int, ...]  # images per class after pseudo-labelling
    labels_after: tuple[int, ...]  # images per class in the training set
    funnel: tuple[tuple[str, int], ...]  # ("hits", 16384), ("unique images", 3021), ...
    outcomes: dict[str, int]  # outcome -> count among images that were tried
    gallery: tuple[GalleryImage, ...]
    losses: tuple[tuple[float, ...], ...]  # training loss per step, one curve a seed
    initial_share: float  # share of the initial weights in the averaged model
    groups: int = 0  # of similar labels: the highest loss that a descriptor can have
    min_cosine: float | None = None  # with its query, that a fetched image must have
    warnings: tuple[TargetWarning, ...] = ()
    hubness: Hubness | None = None
    map: ClassMap | None = None
    measures: Measures | None = None
    verdicts: tuple[Verdict, ...] = ()  # one a seed, if the gate was on


@dataclass(frozen=True)
class IndexReport:
    """How well the shared index finds the image of a held-out caption, and how it was trained."""

    rows: int
    dim: int
    cells: int
    code: str
    method: str
    recall_at_1: dict[int, float]  # nprobe -> recall in 0..1
    objectives: tuple[tuple[float, float], ...]  # (L_kmeans, L_cross_modal in 0..1) after so many updates


@dataclass(frozen=True)
class Timing:
    """Wall time of one stage, summed over its artifacts."""

    stage: str
    artifacts: int
    seconds: float


@dataclass(frozen=True)
class LineageNode:
    """One artifact and what it was made from."""

    ref: str  # 'model/3fa9c1d2e4b5'
    stage: str
    key: str
    digest: str
    rows: str
    parents: tuple[str, ...]


@dataclass(frozen=True)
class ReportData:
    """One run: its targets and what they share."""

    title: str
    created: str
    version: str
    profile: str
    targets: tuple[TargetReport, ...]
    index: IndexReport | None
    timings: tuple[Timing, ...]
    lineage: tuple[LineageNode, ...]
    settings: dict[str, object]
    notes: tuple[str, ...]  # warnings for the user
