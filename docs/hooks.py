"""For mkdocs: files outside `docs/` that pages link to become part of the site.

Links in pages are those that work in the repository; here they become those that work in the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

INFRA, RESULTS, EXAMPLES = "infra/README.md", "benchmarks/results", "examples"
MOVED = ((f"../{INFRA}", "infra.md"), (f"../{RESULTS}/", "results/"), (f"../{EXAMPLES}/", "examples/"))


def on_files(files: Files, config: Any) -> Files:
    root = Path(config.config_file_path).parent
    files.append(File.generated(config, "infra.md", abs_src_path=str(root / INFRA)))
    for folder, name in ((RESULTS, "results"), (EXAMPLES, "examples")):
        for path in sorted((root / folder).iterdir()):
            files.append(File.generated(config, f"{name}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.file.src_uri == "infra.md":
        return markdown.replace("](../docs/", "](")
    for here, there in MOVED:
        markdown = re.sub(rf"\]\(((?:\.\./)*){re.escape(here)}", rf"](\1{there}", markdown)
    return markdown
