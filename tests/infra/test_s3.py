"""Bucket files: applied to a real S3 server, and measured against what the store really does."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from moto.iam.exceptions import MalformedPolicyDocument
from moto.iam.policy_validation import IAMPolicyDocumentValidator

from infra.compose import prepare
from mudg_core.settings import StorageSettings, load_settings
from mudg_core.storage.objects import check_conditional_puts
from mudg_core.storage.objects_s3 import S3Objects, make_client
from tests.infra.files import INFRA, load
from tests.support.seaweed import SeaweedServer

POLICY = json.loads((INFRA / "s3/policy.json").read_text())
RULES = json.loads((INFRA / "s3/lifecycle.json").read_text())["Rules"]
ACTION = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
}
ON_FAILURE = {"s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"}
PART = 5 << 20


def storage(server: SeaweedServer, bucket: str) -> StorageSettings:
    return StorageSettings(url=f"s3://{bucket}/store", endpoint_url=server.endpoint)


def test_prepare_makes_a_bucket_once_and_leaves_others_alone(s3_environment: SeaweedServer) -> None:
    with closing(s3_environment.client()) as client:
        prepare.make_bucket(storage(s3_environment, "infra-made"))
        rules = client.get_bucket_lifecycle_configuration(Bucket="infra-made")["Rules"]
        assert {rule["ID"] for rule in rules} == {rule["ID"] for rule in RULES}
        client.delete_bucket_lifecycle(Bucket="infra-made")
        prepare.make_bucket(storage(s3_environment, "infra-made"))
        with pytest.raises(client.exceptions.ClientError):
            client.get_bucket_lifecycle_configuration(Bucket="infra-made")


def test_prepare_then_registers_pool_deployments_and_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setenv("MUDG_STORAGE__URL", "s3://somewhere/store")
    monkeypatch.setattr(prepare, "make_bucket", called.append)
    monkeypatch.setattr(prepare.subprocess, "run", lambda command, **_: called.append(command))
    monkeypatch.setattr(prepare, "configure_server", called.append)
    monkeypatch.setenv("MUDG_COMPUTE__WORKERS", "3")
    prepare.main()
    assert called == [load_settings().storage, *prepare.COMMANDS, 3]
    assert "mudg" in prepare.COMMANDS[0]
    monkeypatch.setenv("MUDG_COMPUTE__DEVICE", "cuda")
    for gpus, limit in (("8", 8), ("", 1)):
        monkeypatch.setenv("GPUS", gpus)
        prepare.main()
        assert called[-1] == limit


def test_the_lifecycle_expires_scratch_and_never_results() -> None:
    expiring = {rule["Filter"]["Prefix"] for rule in RULES if "Expiration" in rule}
    assert expiring == {"store/probes/", "store/checkpoints/", "store/quarantine/"}
    [aborting] = [rule for rule in RULES if "AbortIncompleteMultipartUpload" in rule]
    assert aborting["Filter"] == {"Prefix": "store/"} and "Expiration" not in aborting


def test_the_policy_allows_what_the_store_does_and_no_more(
    s3_environment: SeaweedServer, tmp_path: Path
) -> None:
    settings = StorageSettings(
        url=f"s3://{s3_environment.bucket}/infra", endpoint_url=s3_environment.endpoint
    )
    client, seen = make_client(settings), set()
    client.meta.events.register("before-call.s3", lambda model, **_: seen.add(model.name))
    objects = S3Objects(settings, client, part_bytes=PART)
    check_conditional_puts(objects)
    large = tmp_path / "large"
    large.write_bytes(bytes(PART + 1))
    objects.upload("artifacts/large", large, hashlib.sha256(large.read_bytes()).hexdigest())
    objects.download("artifacts/large", tmp_path / "again")
    assert objects.exists("artifacts/large") and list(objects.list("artifacts/")) == ["artifacts/large"]
    objects.delete("artifacts/large")
    allowed = {
        action
        for one in POLICY["Statement"]
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }
    assert {ACTION[name] for name in seen} == allowed - ON_FAILURE
    assert seen == ACTION.keys()


def test_policies_are_well_formed_and_for_our_prefix() -> None:
    IAMPolicyDocumentValidator(json.dumps(POLICY)).validate()
    with pytest.raises(MalformedPolicyDocument):
        IAMPolicyDocumentValidator(json.dumps(POLICY | {"Version": "2012"})).validate()
    assert [one["Resource"] for one in POLICY["Statement"]] == [
        "arn:aws:s3:::mudg/store/*",
        "arn:aws:s3:::mudg",
    ]
    assert load("compose/compose.yaml")["x-client"]["MUDG_STORAGE__URL"] == "${S3_URL:-s3://mudg/store}"
    bucket = json.loads((INFRA / "s3/bucket-policy.json").read_text())["Statement"]
    assert [one["Effect"] for one in bucket] == ["Deny"] and "aws:SecureTransport" in str(bucket)
