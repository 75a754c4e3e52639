"""Charts as pure functions from numbers to escaped SVG."""

from mudg_core.report.charts.bars import accuracy, charted, descriptor_losses, labels
from mudg_core.report.charts.comparison import comparison
from mudg_core.report.charts.curves import objective_curves, recall_curves
from mudg_core.report.charts.lineage import lineage, lineage_picture
from mudg_core.report.charts.lines import objective, recall, training
from mudg_core.report.charts.lists import class_gains, funnel, outcome_legend, outcomes, timings
from mudg_core.report.charts.measures import alpha_curve, confidences, reliability
from mudg_core.report.charts.pairs import hubness
from mudg_core.report.charts.prompts import prompt_study
from mudg_core.report.charts.scatter import class_map

__all__ = [
    "accuracy",
    "alpha_curve",
    "charted",
    "class_gains",
    "class_map",
    "comparison",
    "confidences",
    "descriptor_losses",
    "funnel",
    "hubness",
    "labels",
    "lineage",
    "lineage_picture",
    "objective",
    "objective_curves",
    "outcome_legend",
    "outcomes",
    "prompt_study",
    "recall",
    "recall_curves",
    "reliability",
    "timings",
    "training",
]
