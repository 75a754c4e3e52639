"""A flow as a Prefect flow run, its stages as tasks computed by Dask, and what it shows in Prefect's UI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx
import prefect
from prefect.settings import PREFECT_API_URL

from deployments import summaries
from mudg_core.errors import OrchestrationError
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore
from tasks.executors.prefect_artifacts import Shown, show
from tasks.executors.prefect_dask import PrefectOnDask
from tasks.flow import Flow
from tasks.run import executing

P = ParamSpec("P")
R = TypeVar("R")

SUMMARIES = {
    "build-index": summaries.index_shown,
    "build-classifier": summaries.classifier_shown,
    "compare": summaries.comparison_shown,
    "study-prompts": summaries.prompts_shown,
    "demo": summaries.demo_shown,
}


def call(flow: Flow[Concatenate[Settings, P], R], settings: Settings, *args: P.args, **inputs: P.kwargs) -> R:
    """Runs a flow of ours as one of Prefect's, with its tasks on the scheduler that the settings name."""

    def body(settings: Settings) -> R:
        return run_stages(flow, settings, *args, **inputs)

    # Prefect records a flow's parameters: the settings are enough to know it by, and the rest may be large.
    declared: Any = prefect.flow(
        name=flow.name,
        flow_run_name=flow.run_name(settings, *args, **inputs).replace("{", "{{").replace("}", "}}"),
        description=flow.description,
        persist_result=False,
        validate_parameters=False,
    )(body)
    try:
        result: R = declared(settings)
    except httpx.TransportError as error:  # nobody but Prefect's client speaks by it in a flow
        raise OrchestrationError(
            what=f"the Prefect server does not answer: {error}",
            where=PREFECT_API_URL.value() or "",
            fix="see that it is up (`mudg doctor`), and run again: what is made stays",
        ) from error
    return result


def run_stages(
    flow: Flow[Concatenate[Settings, P], R], settings: Settings, *args: P.args, **inputs: P.kwargs
) -> R:
    """Inside a Prefect flow run: the flow with its stages as tasks, and then its summary."""
    with PrefectOnDask(settings.compute) as executor, executing(executor):
        built = flow(settings, *args, **inputs)
    show(lambda: summary_of(flow.name, settings, built))
    return built


def summary_of(name: str, settings: Settings, built: Any) -> Sequence[Shown]:
    make: Any = SUMMARIES.get(name)
    return make(ArtifactStore(settings.storage), settings, built) if make else ()
