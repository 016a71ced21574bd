"""What import-linter cannot see: imports made while running, and when they are made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ["mem0", "litellm", "onnxruntime", "tokenizers"]


def test_starting_loads_no_model_and_none_of_its_libraries(tmp_path):
    code = (
        "import json, sys, django; django.setup()\n"
        "import firmmemory.urls, firmmemory.wsgi\n"
        f"print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    )
    environment = {
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.dev",
        "FIRM_MEMORY_DATA_DIR": str(tmp_path),
        "FIRM_MEMORY_ENV_FILE": "",
    }

    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )

    assert json.loads(loaded.stdout) == []


def test_imports_by_name_stay_in_their_room():
    by_name = re.compile(r"""(?:import_module|__import__|import_string)\(\s*["'](mem0|litellm)\b""")
    found = {
        (found[1], path.relative_to(ROOT).as_posix())
        for path in (ROOT / "apps").rglob("*.py")
        for found in by_name.finditer(path.read_text())
    }

    assert {where for what, where in found if what == "mem0" and "/providers/mem0/" not in where} == set()
    assert {where for what, where in found if what == "litellm" and "/embedders/litellm.py" not in where} == set()


def test_litellm_says_nothing_on_standard_output_while_it_is_loaded(tmp_path):
    """There the MCP command speaks its protocol, at whatever level this process logs."""
    code = (
        "import logging, django; django.setup()\n"
        "logging.getLogger().setLevel(logging.DEBUG)\n"
        "from apps.memories.providers.embedders.litellm import load_litellm\n"
        "load_litellm()"
    )
    environment = {
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.dev",
        "FIRM_MEMORY_DATA_DIR": str(tmp_path),
        "FIRM_MEMORY_ENV_FILE": "",
    }

    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )

    assert loaded.stdout == ""
    assert "LiteLLM" not in loaded.stderr
