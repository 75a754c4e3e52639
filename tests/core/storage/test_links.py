"""Addresses by which browsers open the files of a store."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from mudg_core.errors import SettingsError
from mudg_core.settings import StorageSettings, load_settings
from mudg_core.storage import ArtifactStore
from tests.core.storage.making import REPORT, SHARD, maker, recipe
from tests.support.seaweed import SECRET_KEY


def test_a_link_opens_the_file(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker(b"abc"))
    for name in (SHARD, REPORT):
        with urlopen(store.link(ref, name), timeout=30) as answer:
            assert answer.read() == store.file(ref, name).read_bytes()


def test_a_page_on_s3_is_shown_and_not_saved(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings)
    ref = store.build(recipe(), maker())
    link = store.link(ref, REPORT)
    with urlopen(link, timeout=30) as answer:
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    key = f"{store.objects.prefix}/{store.manifest(ref).path(REPORT)}"  # type: ignore[attr-defined]
    head = store.objects.client.head_object(Bucket=store.objects.bucket, Key=key)  # type: ignore[attr-defined]
    assert head["ContentType"] == "text/html; charset=utf-8"
    assert SECRET_KEY not in link and "X-Amz-Expires=604800" in link


def test_a_link_opens_its_own_file_only_and_for_its_time_only(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings.model_copy(update={"link_hours": 0.5}))
    ref = store.build(recipe(), maker())
    link = store.link(ref, REPORT)
    assert "X-Amz-Expires=1800" in link
    with pytest.raises(HTTPError, match="403"):
        urlopen(link.replace("report.html", "img_emb/img_emb_0.npy", 1), timeout=30)


def test_a_link_names_the_store_as_browsers_know_it(s3_settings: StorageSettings) -> None:
    """Workers reach it by a name of their own network, and a signature holds for one name only."""
    known = str(s3_settings.endpoint_url).replace("127.0.0.1", "localhost")
    store = ArtifactStore(s3_settings.model_copy(update={"link_endpoint_url": known}))
    ref = store.build(recipe(), maker())
    link = store.link(ref, REPORT)
    assert link.startswith(f"{known}/")
    with urlopen(link, timeout=30) as answer:
        assert answer.read() == store.file(ref, REPORT).read_bytes()
    with pytest.raises(HTTPError, match="403"):
        urlopen(link.replace("localhost", "127.0.0.1", 1), timeout=30)


def test_whoever_serves_the_files_is_asked_instead(settings: StorageSettings) -> None:
    store = ArtifactStore(settings.model_copy(update={"browse_url": "https://files.example.org/mudg/"}))
    ref = store.build(recipe(), maker())
    assert store.link(ref, REPORT) == f"https://files.example.org/mudg/{store.manifest(ref).path(REPORT)}"


@pytest.mark.parametrize(
    "url", ["files.example.org", "javascript:alert(1)", "https://x.org/<b>", "file:///x"]
)
def test_f59_only_web_addresses_are_browsed(url: str) -> None:
    with pytest.raises(SettingsError):
        load_settings(overrides={"storage": {"browse_url": url}}, environ={})
