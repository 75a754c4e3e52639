"""Runs a module as it would run on other CPUs: with the kernels that numpy, torch and faiss choose there.

A module prints its outcomes: names with digests of integers. `unlike` says which of them a kernel or a number
of threads has changed. Kernels that this CPU cannot run are left out, as they would end the process.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
CANARY = "canary"  # bits of a float32 product: what no outcome may hang on
THREADS = ("1", "2")
FMA, WIDE = {"X86_V3"}, {"X86_V3", "X86_V4"}
MODERN = ("X86_V3", "X86_V4", "AVX512_ICL", "AVX512_SPR")  # what numpy has code for beyond its oldest CPU
OLD_LIBM = "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"


@dataclass(frozen=True)
class Cpu:
    """A CPU by the name of its OpenBLAS kernel, with what the other libraries would do on it."""

    core: str
    needs: frozenset[str]
    torch: str
    mkl: str
    faiss: str

    def variables(self, threads: str) -> dict[str, str]:
        """faiss reads one of its two names, by version; glibc's exp and log have kernels too."""
        hidden = [name for name in MODERN if _features().get(name) and name not in self.needs]
        chosen = {
            "OPENBLAS_CORETYPE": self.core,
            "ATEN_CPU_CAPABILITY": self.torch,
            "MKL_ENABLE_INSTRUCTIONS": self.mkl,
            "FAISS_OPT_LEVEL": self.faiss,
            "FAISS_SIMD_LEVEL": self.faiss.replace("generic", "NONE"),
            "NPY_DISABLE_CPU_FEATURES": " ".join(hidden),
            "GLIBC_TUNABLES": "" if self.needs else OLD_LIBM,
        }
        counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        return {name: value for name, value in chosen.items() if value} | counts


CPUS = (
    Cpu("Nehalem", frozenset(), "default", "SSE4_2", "generic"),
    Cpu("Haswell", frozenset(FMA), "avx2", "AVX2", "AVX2"),
    Cpu("Zen", frozenset(FMA), "avx2", "AVX2", "AVX2"),
    Cpu("SkylakeX", frozenset(WIDE), "avx512", "AVX512", "AVX512"),
)


def environments() -> dict[str, dict[str, str]]:
    """What to set, by a name; where there are no such kernels (on ARM), only threads are left to vary."""
    cpus = [cpu for cpu in CPUS if all(_features().get(name) for name in cpu.needs)]
    if "X86_V2" not in _features():
        return {f"{count} threads": {"OMP_NUM_THREADS": count} for count in THREADS}
    return {f"{cpu.core}, {count} threads": cpu.variables(count) for cpu in cpus for count in THREADS}


def unlike(module: str) -> dict[str, dict[str, list[str]]]:
    """Outcomes that are not the same everywhere: name -> digest -> where."""
    places = environments()
    with ThreadPoolExecutor(2) as pool:
        runs = dict(zip(places, pool.map(lambda set_: outcomes(module, set_), places.values()), strict=True))
    found: dict[str, dict[str, list[str]]] = {}
    for place, digests in runs.items():
        for name, digest in digests.items():
            found.setdefault(name, {}).setdefault(digest, []).append(place)
    return {name: by_digest for name, by_digest in found.items() if len(by_digest) > 1}


def outcomes(module: str, variables: Mapping[str, str]) -> dict[str, str]:
    """What a module prints in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", module],
        env=os.environ | variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    digests: dict[str, str] = json.loads(run.stdout)
    return digests


def show(makers: Mapping[str, Callable[[], object]]) -> None:
    """Prints the digest of what each maker returns: integers, or names and texts."""
    digests = {name: digest(make()) for name, make in makers.items()}
    print(json.dumps(digests | {CANARY: digest(_product().view(np.int32))}))


def digest(result: object) -> str:
    """No floats: their bits may differ."""
    if isinstance(result, np.ndarray):
        assert result.dtype.kind in "iub", f"a digest of {result.dtype}"
        return hashlib.sha256(result.astype("<i8").tobytes()).hexdigest()
    text = json.dumps(result)
    json.loads(text, parse_float=_refuse)
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse(number: str) -> None:
    raise AssertionError(f"a digest of floats: {number}")


def _product() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    values = np.random.default_rng(0).standard_normal((64, 515)).astype(np.float32)
    return np.asarray(values @ values.T)


def _features() -> dict[str, bool]:
    """What this CPU has, as numpy sees it."""
    features: dict[str, bool] = import_module("numpy._core._multiarray_umath").__cpu_features__
    return features
