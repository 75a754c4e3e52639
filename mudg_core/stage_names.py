"""What people see a stage called: in the terminal, in the report and in Prefect's UI. `mudg plan` has the
same words for stages that it estimates. Stored names (`picks/3fa9c2d1`) enter content keys: they stay."""

from __future__ import annotations

# Stored name: the name that people see, and what a line of the terminal says that it does.
STAGES = {
    "corpus-shard": ("corpus", "draw the demo corpus"),
    "downloaded-shard": ("download", "download images"),
    "embedding-shard": ("embed", "embed images and captions"),
    "screened-shard": ("screen", "drop duplicates and mismatched captions"),
    "samples": ("samples", "draw captions to learn from and to measure with"),
    "neighbors": ("neighbors", "find each caption's nearest images"),
    "neighbors-guided": (
        "neighbors-guided",
        "find the other captions' nearest images through the index of the first",
    ),
    "pairs": ("pair", "pair captions with images"),
    "centroids": ("train", "k-means, plain and paired"),
    "cells": ("assign cells", "assign images to cells"),
    "router": ("router", "fit the router"),
    "choice": ("choice", "choose the variant that reads least"),
    "code": ("code", "train the fine code"),
    "index-part": ("populate", "populate the index"),
    "index": ("index", "assemble the version"),
    "recall": ("recall", "measure recall"),
    "forgotten-rows": ("takedowns", "look for images that were taken down"),
    "queries": ("augment", "choose descriptors"),
    "candidates": ("search", "search the index"),
    "labels": ("label", "pseudo-label"),
    "picks": ("select", "select"),
    "dataset": ("fetch", "fetch, filter, refill"),
    "model": ("finetune", "finetune the student"),
    "held-out": ("held-out", "hold out labelled images"),
    "gate": ("gate", "estimate without labels whether it is better"),
    "classifier": ("classifier", "write the model's folder"),
    "evaluation": ("evaluation images", "collect evaluation images"),
    "evaluation-prints": ("evaluation-prints", "fingerprint evaluation images"),
    "evaluation-features": ("evaluation-features", "encode evaluation images"),
    "zero-shot": ("zero-shot", "evaluate the student before finetuning"),
    "scores": ("evaluate", "evaluate per domain"),
    "cache-scores": ("cache-scores", "evaluate adapters without training"),
    "prompts": ("prompts", "measure accuracy by prompts"),
    "shots": ("shots", "draw labelled images"),
    "comparison": ("comparison", "put the rows together"),
    "comparison-page": ("comparison-page", "draw the comparison"),
    "map": ("map", "draw the map of the images"),
    "leaks": ("leaks", "look for evaluation images among the candidates"),
    "warnings": ("warnings", "look for what may be wrong"),
    "report": ("report", "write the report"),
}


def stage_name(stage: str) -> str:
    """One that this version does not know, from a store of another, keeps its stored name."""
    return STAGES.get(stage, (stage, stage))[0]


def stage_title(stage: str) -> str:
    return STAGES.get(stage, (stage, stage))[1]
