"""What a stack's Prefect server has to know: a work pool, the deployments, how many tasks use a GPU, and when
a run is dead."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName
from prefect.client.schemas.schedules import CronSchedule
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from pydantic import ValidationError

from mudg.ops.stack.running import POOL, Stack
from mudg_core.errors import InputError, OrchestrationError
from mudg_core.yaml_text import load as load_yaml

GPU_LIMIT = "tag:gpu"  # the name under which Prefect's task engine takes slots for tasks with this tag
SCHEDULED = "build-index"
CHECKOUT = Path(__file__).parents[3]
DEAD_RUNS = CHECKOUT / "deployments/automations/dead-run.yaml"  # a release has it at the same place
OFF, DEFAULT = "off", "default"  # instead of a schedule: none, or that of prefect.yaml


def prefect_file() -> Path:
    """Lies beside the packages in a checkout, and where an installed release has its data."""
    beside = CHECKOUT / "prefect.yaml"
    installed: list[Path] = []
    with suppress(PackageNotFoundError):
        installed = [Path(str(file.locate())) for file in files("mudg") or [] if file.name == beside.name]
    for path in (beside, *installed):
        if path.is_file():
            return path
    raise OrchestrationError(
        what="prefect.yaml, which declares the deployments, is missing",
        where=str(beside),
        fix="install mudg again, or use a checkout: pip install -e CHECKOUT",
    )


def declared_deployments() -> set[str]:
    return {deployment["name"] for deployment in load_yaml(prefect_file().read_text())["deployments"]}


def check_cron(cron: str) -> None:
    if cron not in (OFF, DEFAULT):
        cron_schedule(cron)


def cron_schedule(cron: str) -> CronSchedule:
    try:
        return CronSchedule(cron=cron, timezone="UTC")
    except (ValidationError, ValueError) as error:
        raise InputError(
            what=f"{cron[:80]!r} is not a cron schedule",
            where="--index-cron",
            fix="write minute, hour, day, month and weekday: '0 3 * * *' is every night at three (UTC); "
            f"or {OFF}, or {DEFAULT}",
        ) from error


def _client(stack: Stack) -> SyncPrefectClient:
    """By the stack's own password: this process may have read another from its environment."""
    return SyncPrefectClient(stack.api_url, auth_string=stack.keys.prefect)


def is_registered(stack: Stack) -> bool:
    """Whether the server has all that was registered: somebody may have deleted some, or its database."""
    with _client(stack) as client:
        try:
            client.read_work_pool(POOL)
            client.read_global_concurrency_limit_by_name(GPU_LIMIT)
        except ObjectNotFound:
            return False
        if not client.read_automations_by_name(automation(DEAD_RUNS).name):
            return False
        return declared_deployments() <= {deployment.name for deployment in client.read_deployments()}


def create_pool(stack: Stack) -> None:
    with _client(stack) as client:
        with suppress(ObjectAlreadyExists):
            client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        end_dead_runs(client)


def end_dead_runs(client: SyncPrefectClient) -> None:
    """By the automation as it is today: an older release may have registered another of that name."""
    current = automation(DEAD_RUNS)
    for earlier in client.read_automations_by_name(current.name):
        client.delete_automation(earlier.id)
    client.create_automation(current)


def automation(file: Path) -> AutomationCore:
    return AutomationCore.model_validate(load_yaml(file.read_text()))


def limit_gpu_tasks(stack: Stack, limit: int) -> None:
    with _client(stack) as client:
        client.upsert_global_concurrency_limit_by_name(GPU_LIMIT, limit)


def schedule_index(stack: Stack, cron: str) -> None:
    """This schedule and no other, and active whatever prefect.yaml says; or what there is, but not active."""
    schedule = None if cron == OFF else cron_schedule(cron)
    named = DeploymentFilter(name=DeploymentFilterName(any_=[SCHEDULED]))
    with _client(stack) as client:
        for deployment in client.read_deployments(deployment_filter=named):
            schedules = client.read_deployment_schedules(deployment.id)
            for other in schedules[1:]:
                client.delete_deployment_schedule(deployment.id, other.id)
            if schedules:  # changed and not replaced, as it may have parameters of its own
                active = schedule is not None
                client.update_deployment_schedule(
                    deployment.id, schedules[0].id, active=active, schedule=schedule
                )
            elif schedule is not None:
                new = DeploymentScheduleCreate(schedule=schedule, active=True)
                client.create_deployment_schedules(deployment.id, [new])
