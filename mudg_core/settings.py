"""One frozen settings tree for everything, and one way to load it.

Later wins: profile, then settings files (YAML; first the one that `MUDG_SETTINGS_FILE` names), then `MUDG_*`
environment variables (`MUDG_INDEX__CELLS=256`), then command-line flags. Unknown keys are rejected wherever
they come from, because a misspelt setting that is silently ignored costs a day of computing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from mudg_core.errors import SettingsError
from mudg_core.yaml_text import load as load_yaml

Json: TypeAlias = dict[str, Any]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Days = Annotated[float | None, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Cidr = Annotated[str, AfterValidator(lambda text: str(ip_network(text)))]

ENV_PREFIX = "MUDG_"
SETTINGS_FILE = "MUDG_SETTINGS_FILE"  # a file for every process of a machine or container; not a setting
MAX_FILE_BYTES = 1 << 20
INDEX_MODEL, DEMO_MODEL = "index", "demo:index"


class Area(BaseModel):
    """Base of every settings model: frozen, so that a content key computed from it stays true."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())


class StorageSettings(Area):
    """Where artifacts live. Credentials are never settings: the environment has them (AWS_*)."""

    url: str = Field("file://.mudg", description="file:///path or s3://bucket/prefix")
    endpoint_url: str | None = Field(None, description="S3 endpoint; empty for AWS itself")
    region: str = "us-east-1"
    timeout_seconds: float = Field(30.0, gt=0, le=3600)
    retries: int = Field(4, ge=0, le=20)
    cache_dir: str = Field(".mudg/cache", description="verified local copies of remote files")
    browse_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s<>]+$",
        description="address under which browsers reach the store's files; empty: signed links",
    )
    link_endpoint_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s<>]+$",
        description="S3 endpoint in signed links, where browsers know the store by another than endpoint_url",
    )
    link_hours: float = Field(
        168.0, gt=0, le=168, description="that a signed link opens; a week is the most that S3 allows"
    )


class GcSettings(Area):
    """What garbage collection (`mudg gc`) keeps, and for how long. Days count from the making of an artifact,
    or from the last time that a run wanted one that was about to go. Nothing here enters a content key."""

    versions: int = Field(
        3, ge=1, le=50, description="earlier index versions kept, for `mudg index rollback`"
    )
    report_days: Days = Field(
        90.0, description="reports, scores and studies, with all they were made from; and submissions"
    )
    model_days: Days = Field(365.0, description="models, with all they were made from; empty: for good")
    dataset_days: Days = Field(180.0, description="training sets, with all they were made from")
    shard_days: Days = Field(30.0, description="embedded and downloaded shards that no index names")
    other_days: Days = Field(7.0, description="all other unreferenced artifacts")
    checkpoint_days: Days = Field(7.0, description="of stages that were never finished")
    quarantine_days: Days = Field(30.0, description="damaged artifacts that were set aside")
    grace_hours: float = Field(
        24.0, ge=1, le=8760, description="younger things stay; what is marked for deletion goes after it"
    )
    lease_minutes: float = Field(
        30.0, gt=0, description="after which a run that says nothing more counts as dead"
    )

    @model_validator(mode="after")
    def _leases_end_within_the_grace(self) -> GcSettings:
        if self.lease_minutes > 30 * self.grace_hours:
            raise ValueError("lease_minutes must be at most half of the grace period")
        return self


class ComputeSettings(Area):
    """How work is spread out. Nothing here may change a result, so nothing here enters a content key; but for
    the device, as a GPU computes other bits (`Stage.precision` in tasks/policy.py)."""

    executor: Literal["auto", "in-process", "processes", "prefect-dask"] = Field(
        "auto",
        description="who runs stages: this process, processes of this machine, or Prefect on Dask; auto: "
        "Prefect on Dask where PREFECT_API_URL, dask_address or cluster names any of it, else processes, or "
        "this process if workers is 1",
    )
    dask_address: str | None = Field(None, description="scheduler to use; empty starts a cluster")
    cluster: Literal["local", "cuda", "kubernetes", "slurm"] = Field(
        "local", description="what is started for a run without dask_address; infra/README.md explains each"
    )
    cluster_options: dict[str, Any] = Field(
        default_factory=dict,
        description="for the class of the cluster: LocalCluster, LocalCUDACluster, KubeCluster, SLURMCluster",
    )
    workers: int = Field(2, ge=1, le=256, description="of the cluster, whoever starts it")
    memory_limit: str = Field("2GiB", description="per worker; of Kubernetes, its spec says it")
    task_timeout_seconds: float = Field(3600.0, gt=0, description="for each shard or artifact of a task")
    shards_per_task: int = Field(
        32, ge=1, description="shards in one Prefect task, at most; fewer where workers would stand idle"
    )
    device: str = Field(
        "cpu",
        pattern=r"^(cpu|cuda(:\d+)?)$",
        description="of stages that run a model; those on a GPU have keys of their own",
    )
    gpu_slots: bool = Field(
        True, description="GPU tasks wait for a slot of Prefect's limit tag:gpu; not with a private server"
    )
    decode_threads: int | None = Field(
        None,
        ge=0,
        le=256,
        description="that decode images ahead of the model in each worker; empty: those that a worker's "
        "share of the cores leaves idle",
    )

    @model_validator(mode="after")
    def _cluster_fits(self) -> ComputeSettings:
        if self.cluster == "cuda" and self.device == "cpu":
            raise ValueError("cluster: cuda goes with device: cuda, and not with cpu")
        if taken := {"n_workers", "asynchronous"} & self.cluster_options.keys():
            raise ValueError(f"cluster_options: {', '.join(sorted(taken))} is ours; use compute.workers")
        return self

    def decoders(self, cores: int) -> int:
        """Where every core computes already, a thread that decodes beside the model only gets in its way. A
        model on a GPU leaves all cores to it."""
        if self.decode_threads is not None:
            return self.decode_threads
        return max(0, cores // self.workers - (self.device == "cpu"))


class CorpusSettings(Area):
    """The pool that is searched: what was added to the store (`mudg corpus add`), or the demo world."""

    source: Literal["added", "demo"] = Field(
        "added", description="what `mudg corpus add` registered, or the demo world"
    )
    rows: int = Field(24_000, ge=100, le=10_000_000_000, description="of the demo world")
    rows_per_shard: int = Field(10_000, ge=50, le=10_000_000, description="small files share a shard")
    image_size: int = Field(64, ge=64, le=512, description="of the demo world")
    seed: Seed = Field(0, description="of the demo world")
    max_image_bytes: int = Field(32 << 20, ge=1, le=1 << 30)
    max_pixels: int = Field(64_000_000, ge=1, le=1_000_000_000, description="refused before it is decoded")
    opt_out: Literal["refuse", "keep"] = Field("refuse", description="rows whose owners have opted out")
    dedup: bool = Field(False, description="leave near copies within a shard out of the index")
    min_cosine: float | None = Field(
        None, ge=-1, le=1, description="leave pairs below this text-image cosine out of the index"
    )


class DownloadSettings(Area):
    """How links become images. Links come from strangers, so everything about them has a limit."""

    command: str | None = Field(
        None, description="img2dataset; empty: the one that `make setup` installs, or the one on PATH"
    )
    image_size: int = Field(256, ge=16, le=4096, description="shorter side of what is kept; never enlarged")
    quality: int = Field(95, ge=1, le=100, description="of the JPEGs that are kept")
    threads: int = Field(32, ge=1, le=512, description="links fetched at a time by one worker")
    timeout_seconds: float = Field(10.0, gt=0, le=600, description="longest wait for a server's next bytes")
    max_bytes: int = Field(20 << 20, ge=1, le=1 << 30, description="of one answer")
    max_seconds: float = Field(60.0, gt=0, le=3600, description="that one connection may last in all")
    max_pixels: int = Field(64_000_000, ge=1, le=1 << 30, description="more are refused before decoding")
    retries: int = Field(2, ge=0, le=10, description="further rounds for links whose failure may pass")
    backoff_seconds: float = Field(30.0, ge=0, le=600, description="pause before the first; then doubled")
    min_yield: Share = Field(0.2, description="share of links that must give an image, or the shard fails")
    user_agent: str = Field(
        "mudg",
        pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,63}$",
        description="our name for servers, which may address opt-outs to it",
    )
    opt_out_directives: tuple[Literal["noai", "noimageai", "noindex", "noimageindex"], ...] = Field(
        ("noai", "noimageai"), min_length=1, description="in X-Robots-Tag, that keep an image out"
    )
    allow_networks: tuple[Cidr, ...] = Field(
        (), description="address ranges that may be reached although they are not public"
    )
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = Field(
        (80, 443), min_length=1, description="that links may name"
    )


class EncodeSettings(Area):
    """The indexing model, f_index."""

    model: str = Field(
        INDEX_MODEL,
        description="index: that of the current index; demo:index, demo:student, local-dir:PATH, MODEL/TAG "
        "or MODEL/FILE.safetensors",
    )
    batch_size: int | None = Field(
        None, ge=1, le=16_384, description="empty: 32 on a CPU, whose caches it fills, and 256 on a GPU"
    )

    def batch(self, device: str) -> int:
        """On a CPU a batch of 32 was a third faster than one of 256."""
        return self.batch_size or (256 if device.startswith("cuda") else 32)


class IndexSettings(Area):
    """Paired k-means (Algorithm 1), what goes beyond it, and the IVF index over its cells."""

    variant: Literal["auto", "kmeans", "paired", "centred", "routed", "spilled"] = Field(
        "auto",
        description="kmeans: centroids of images; paired: the paper's; centred: both sides centred first; "
        "routed: and a learned router; spilled: and images also where queries look first; "
        "auto: whichever reads least for the same recall on tuning queries",
    )
    cells: int = Field(128, ge=1, le=4_194_304)
    iterations: int = Field(20, ge=1, le=1000)
    training_texts: int = Field(20_000_000, ge=1, description="pairs sampled for training, at most")
    training_shards: int | None = Field(
        None, ge=1, description="train on the first so many shards; empty: as the current index, or on all"
    )
    retrain_growth: float = Field(
        2.0, gt=1, description="train anew once the corpus has grown by this factor since"
    )
    pairs: Literal["exact", "bootstrap"] = Field(
        "exact",
        description="bootstrap: most of them through an index that a few exact ones train",
    )
    bootstrap_texts: float = Field(0.1, gt=0, le=1, description="share of texts that are searched exactly")
    bootstrap_probes: Share = Field(0.1, description="share of cells that the others read")
    tuning_queries: int = Field(2000, ge=1, le=1_000_000, description="captions that choose a variant")
    report_queries: int = Field(1000, ge=1, le=1_000_000, description="captions that measure the result")
    image_queries: int = Field(500, ge=1, le=1_000_000, description="images that measure it too")
    choice_rows: int = Field(1_000_000, ge=1, description="images on which variants are compared, at most")
    spill: Share = Field(0.1, description="storage that second homes may take, as a share of the images")
    code: str = Field("flat", pattern=r"^(flat|fp16|sq8u?|sq6|sq4|pq[1-9][0-9]*)$")
    rows_per_part: int = Field(1_000_000, ge=1, description="images in one file of the index, about")
    probes: int = Field(16, ge=1, description="cells that a query reads, at most")
    mass: float = Field(1.0, gt=0, le=1, description="a routed query stops at this probability")
    gain: float = Field(0.7, ge=0, le=2, description="how much a routed query prefers small cells")
    rerank: int = Field(0, ge=0, le=10_000, description="hits compared again exactly; 0: none")
    required_recall: Share = Field(0.5, description="recall@1 of held-out captions that a version needs")
    seed: Seed = 0


class AugmentSettings(Area):
    """How class names become queries: adaptive label augmentation (Eq. 4), or what it is compared with."""

    method: Literal[
        "adaptive", "random", "waffle-words", "waffle-characters", "templates", "per-class", "cupl", "none"
    ] = Field("adaptive", description="how prompts are made; docs/target.md explains each")
    count: int = Field(16, ge=1, le=1024, description="m, the augmentations kept")
    label_clusters: int = Field(
        16, ge=1, le=4096, description="k2, at most; never more than a third of the labels"
    )
    near_copy: float = Field(
        0.9, ge=-1, le=1, description="effects of higher cosine are alike, one of them is kept; 1: keep all"
    )
    descriptors: str | None = Field(
        None,
        description="JSON class -> phrases (as per-class needs), or text; empty: the built-in pool",
    )
    prompts: str | None = Field(None, description="JSON class -> whole prompts, for the method cupl")
    pool: int | None = Field(
        None, ge=1, le=100_000, description="descriptors of the pool that are looked at; empty: all"
    )
    seed: Seed = 0


class DatasetSettings(Area):
    """Retrieval, pseudo-labels, selection and filtering (Algorithm 2, steps 1 to 3)."""

    neighbors: int = Field(64, ge=1, le=10_000, description="images retrieved for each query")
    label: Literal["rank", "borda", "cosine"] = Field(
        "rank", description="rank: of the query that ranks an image best; borda: of most points; cosine"
    )
    ranks: Literal["retrieved", "exact"] = Field(
        "retrieved", description="exact: counted among all candidates by every query, for label rank"
    )
    select: Literal[
        "cluster",
        "none",
        "random",
        "margin",
        "least-confident",
        "entropy",
        "herding",
        "k-centre",
        "nearest",
    ] = Field("cluster", description="cluster: one image of each of per_class clusters; none: all images")
    per_class: int = Field(16, ge=1, le=100_000, description="k1, images kept for each class")
    min_cosine: float = Field(0.25, ge=-1, le=1)
    filter_reference: Literal["query", "label"] = "query"
    exclude_leaks: bool = Field(
        True, description="keep copies of evaluation images out of training; false: only warn of them"
    )
    absent_below: Share = Field(
        0.15, description="warn of a class that captions support less than this share of random captions"
    )
    few_share: Share = Field(0.5, description="warn of a class with less than this share of per_class")
    refill: Literal["label", "cluster"] = Field(
        "label",
        description="replacement once a cluster is used up: other candidates of its label, or none",
    )
    min_yield: Share = Field(
        0.05, description="share of the images tried that must be there and readable, or the stage fails"
    )
    verify_hashes: bool = Field(
        True, description="of images fetched by their links, where the pool has md5 or sha256"
    )

    @model_validator(mode="after")
    def _exact_ranks_label(self) -> DatasetSettings:
        if self.ranks == "exact" and self.label != "rank":
            raise ValueError(f"ranks: exact goes with label: rank and not with {self.label}")
        return self


# What a GPU computes in, beside the settings in a recipe; a path of a setting has a dot.
PRECISION = "precision"

# The paper's, for ViT-B/16 and for ViT-L/14, and the width of a vision tower that counts as the latter.
BATCH_AND_RATE, BATCH_AND_RATE_LARGE = (128, 6.4e-4), (64, 1.6e-4)
LARGE_WIDTH = 1024


class TrainSettings(Area):
    """Finetuning of the student (step 4, Eq. 5)."""

    model: str = Field("demo:student", description="f_student; same forms as encode.model")
    blocks: int = Field(3, ge=1, le=64, description="last blocks of each tower that are trained")
    vision_from: int | None = Field(
        None, ge=0, description="train also vision blocks from this one on, counted from 0"
    )
    prompt_tokens: str = Field("a photo of", description="words that start the shared soft prompt")
    prompt_rate_factor: float = Field(10.0, gt=0)
    iterations: int = Field(200, ge=1, le=1_000_000, description="N")
    batch_size: int | None = Field(
        None, ge=2, le=65_536, description="empty: the paper's for the student, 128 or (ViT-L/14) 64"
    )
    learning_rate: float | None = Field(
        None, gt=0, description="empty: the paper's for the student, 6.4e-4 or (ViT-L/14) 1.6e-4"
    )
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(1e-5, ge=0)
    temperature: float = Field(25.0, gt=0, description="logits = temperature x cosine")
    loss: Literal["diversity", "cross-entropy", "soft-labels", "contrastive"] = Field(
        "diversity", description="what is minimised; docs/train.md explains each"
    )
    teacher_temperature: float = Field(25.0, gt=0, description="the same of the initial model's predictions")
    soft_label_temperature: float = Field(
        10.0, gt=0, description="the same of soft-labels' teacher; at the student's own it teaches nothing"
    )
    contrastive_temperature: float = Field(10.0, gt=0, description="the same between images of a batch")
    diversity: Share = Field(0.2, description="lambda; 0 is plain cross entropy")
    augmentations: Literal["mean", "in-turn"] = "mean"
    augmentation_limit: int = Field(1024, ge=1, description="augmentations used in the loss, at most")
    ema: float = Field(0.995, ge=0, lt=1)
    min_crop: float = Field(0.5, gt=0, le=1, description="smallest area of a random resized crop")
    image_chunk: int = Field(32, ge=1, description="images whose graph is in memory at a time")
    text_chunk: int = Field(128, ge=1, description="prompts whose graph is in memory at a time")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="of the towers in training; auto: bf16 on a GPU, fp32 on a CPU; part of the key"
    )
    checkpoint_every: int = Field(100, ge=1, description="steps")
    checkpoint_seconds: float = Field(60.0, gt=0, description="or after this time, if that is sooner")

    @property
    def batch(self) -> int:
        return self.batch_size or BATCH_AND_RATE[0]

    @property
    def rate(self) -> float:
        return self.learning_rate or BATCH_AND_RATE[1]

    def precision_on(self, device: str) -> str:
        """bf16 needs no scaled loss on a GPU, and on a CPU half saves no time."""
        usual = "bf16" if device.startswith("cuda") else "fp32"
        return usual if self.precision == "auto" else self.precision

    def for_student(self, vision_width: int | None) -> TrainSettings:
        """With the batch and the rate that the paper has for such a student, where none are given."""
        large = vision_width is not None and vision_width >= LARGE_WIDTH
        batch, rate = BATCH_AND_RATE_LARGE if large else BATCH_AND_RATE
        return self.model_copy(
            update={"batch_size": self.batch_size or batch, "learning_rate": self.learning_rate or rate}
        )


class EvaluateSettings(Area):
    """Evaluation; only this stage ever sees true labels."""

    source: str | None = Field(
        None, description="demo:TARGET, a folder or LAYOUT:PATH; a target's own `evaluation` wins"
    )
    batch_size: int = Field(256, ge=1, le=16_384)
    demo_images_per_class: int | None = Field(
        None, ge=1, le=10_000, description="and style, of the demo world; empty: 20, and 200 in a comparison"
    )
    baseline: Literal["nearest-neighbours", "none"] = Field(
        "nearest-neighbours",
        description="baseline trained and evaluated beside it; none halves the run time",
    )
    alpha_points: int = Field(
        5,
        ge=0,
        le=101,
        description="of the WiSE-FT curve from initial to finetuned weights, ends included; 0: no curve",
    )
    alpha_images: int = Field(
        512, ge=1, le=50_000, description="evaluation images that the curve is measured on, at most"
    )

    @property
    def demo_images(self) -> int:
        return self.demo_images_per_class or 20

    @field_validator("alpha_points")
    @classmethod
    def _both_ends(cls, points: int) -> int:
        if points == 1:
            raise ValueError("a curve has two ends: give 0, or 2 and more")
        return points


class GateSettings(Area):
    """Whether a student is exported: estimated without labels, on held-out pseudo-labelled images."""

    enabled: bool = True
    per_class: int = Field(12, ge=1, le=10_000, description="held-out images of each class, at most")
    images: int = Field(2000, ge=1, le=1_000_000, description="held-out images in all, about, at most")
    alphas: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field(
        (0.25, 0.5, 0.75, 1.0), min_length=1, max_length=32, description="weights that are tried, beside 0"
    )
    margin: float = Field(
        0.0, ge=0, le=100, description="points above zero-shot that must be certain (95 %), or 0 is taken"
    )

    @model_validator(mode="after")
    def _rising(self) -> GateSettings:
        if list(self.alphas) != sorted(set(self.alphas)):
            raise ValueError("alphas must rise, each given once")
        return self


class TargetSettings(Area):
    """What targets submitted by others may do on this machine. No target and no run can change it."""

    allowed_paths: tuple[str, ...] = Field(
        (), description="folders whose files a submitted target may name, absolute; empty: none"
    )

    @field_validator("allowed_paths")
    @classmethod
    def _absolute(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        if relative := [folder for folder in folders if not Path(folder).is_absolute()]:
            raise ValueError(f"{relative[0]!r} is not an absolute path")
        return folders


class Settings(Area):
    """The whole tree."""

    profile: Literal["mudg", "paper", "author-code"] = "mudg"
    storage: StorageSettings = StorageSettings()
    gc: GcSettings = GcSettings()
    compute: ComputeSettings = ComputeSettings()
    corpus: CorpusSettings = CorpusSettings()
    download: DownloadSettings = DownloadSettings()
    encode: EncodeSettings = EncodeSettings()
    index: IndexSettings = IndexSettings()
    target: TargetSettings = TargetSettings()
    augment: AugmentSettings = AugmentSettings()
    dataset: DatasetSettings = DatasetSettings()
    train: TrainSettings = TrainSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    gate: GateSettings = GateSettings()

    def replace(self, overrides: Mapping[str, Any], *, where: str = "overrides") -> Settings:
        """A new tree with some values changed, validated as a whole. The profile stays: it decides values."""
        if overrides.get("profile", self.profile) != self.profile:
            raise SettingsError(
                what="the profile cannot be changed here",
                where=where,
                fix="set it for the whole run",
            )
        return _validate(_merge(self.model_dump(), overrides), where)


# What the paper's text says, where our own defaults go beyond it.
PAPER: Json = {
    "index": {"variant": "paired", "iterations": 10},
    "augment": {"near_copy": 1.0},
    "dataset": {"refill": "cluster"},
}

PROFILES: dict[str, Json] = {
    "mudg": {},
    "paper": PAPER,
    # What the authors' published code does where it differs from their text.
    "author-code": PAPER
    | {
        "dataset": PAPER["dataset"] | {"label": "borda", "filter_reference": "label"},
        "train": {
            "augmentations": "in-turn",
            "augmentation_limit": 8,
            "teacher_temperature": 10.0,
            "min_crop": 0.08,  # torchvision's default
            "vision_from": 9,  # of ViT-B/16 that is the last three blocks, of ViT-L/14 the last fifteen
        },
    },
}


def load_settings(
    files: Sequence[str | Path] = (),
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    defaults: Path | None = None,
    source: str = "command line",
) -> Settings:
    """The settings that hold for this process, from all their sources; later files go on top. `defaults` is a
    file beneath all others, and `source` is where the overrides come from, for whoever reads a complaint."""
    environ = os.environ if environ is None else environ
    named = [defaults, environ.get(SETTINGS_FILE), *files]
    layers = [
        *((_read_file(Path(file)), str(file)) for file in named if file),
        (_read_environment(environ), "environment"),
        (dict(overrides or {}), source),
    ]
    profile, said = next(
        ((layer["profile"], where) for layer, where in reversed(layers) if "profile" in layer), ("mudg", "")
    )
    if not isinstance(profile, str) or profile not in PROFILES:
        raise SettingsError(
            what=f"unknown profile {profile!r}", where=said, fix=f"use one of {', '.join(PROFILES)}"
        )
    tree: Json = PROFILES[profile]
    for layer, where in layers:
        tree = _merge(tree, layer)
        _validate(tree, where)  # here, so that the message names the source at fault
    return _validate(tree, "settings")


def _read_file(path: Path) -> Json:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SettingsError(what="the settings file is larger than 1 MiB", where=str(path))
        tree = load_yaml(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise SettingsError(
            what=f"the settings file cannot be read: {error}", where=str(path), fix="give a UTF-8 YAML file"
        ) from error
    if not isinstance(tree, dict | None):
        raise SettingsError(what="the settings file is not a mapping of areas", where=str(path))
    return tree or {}


def _read_environment(environ: Mapping[str, str]) -> Json:
    """`MUDG_INDEX__CELLS=64` becomes {"index": {"cells": 64}}; values are read as YAML scalars."""
    tree: Json = {}
    for name, text in environ.items():
        if not name.startswith(ENV_PREFIX) or name == SETTINGS_FILE:
            continue
        *areas, leaf = name.removeprefix(ENV_PREFIX).lower().split("__")
        try:
            value = load_yaml(text)
        except yaml.YAMLError as error:
            raise SettingsError(
                what=f"{name} is not a YAML value", where="environment", fix="quote the value"
            ) from error
        for key in reversed([*areas, leaf]):
            value = {key: value}
        tree = _merge(tree, value)
    return tree


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Json:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _validate(tree: Json, where: str) -> Settings:
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc'])}: {_explain(item)}" for item in error.errors()
        )
        raise SettingsError(
            what=f"bad settings: {problems}", where=where, fix="`mudg settings` lists every setting"
        ) from error


def _explain(item: Any) -> str:
    if item["type"] == "extra_forbidden":
        like = _like(".".join(str(part) for part in item["loc"]), item["input"])
        return "no such setting" + (f"; did you mean {like}?" if like else "")
    return f"{item['msg']} (got {str(item['input'])[:80]})"


def _like(name: str, value: Any) -> str:
    """The setting that was probably meant: with a similar name in this area, in a similar area if there is no
    such area, or with the same name in another one."""
    if isinstance(value, Mapping) and value:
        name += f".{next(iter(value))}"
    area, _, leaf = name.rpartition(".")
    names = list(_setting_names(Settings))
    here = {other.rpartition(".")[2]: other for other in names if not area or other.startswith(f"{area}.")}
    similar = [here[one] for one in get_close_matches(leaf, here, n=1)]
    similar = similar or ([] if here else get_close_matches(name, names, n=1))
    return next(iter(similar or (other for other in names if other.endswith(f".{leaf}"))), "")


def _setting_names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        area = field.annotation
        if isinstance(area, type) and issubclass(area, BaseModel):
            yield from _setting_names(area, f"{prefix}{name}.")
        else:
            yield prefix + name
