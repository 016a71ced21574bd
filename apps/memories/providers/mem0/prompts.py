"""mem0's own prompt for finding facts: texts alone, and nothing of mem0 that acts on them.

Import this module late: it imports mem0.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import apps.memories.providers.mem0.quiet  # noqa: F401 - it has to come before anything of mem0

_prompts: Any = import_module("mem0.configs.prompts")


def extraction_prompts(material: str, *, instructions: str) -> tuple[str, str]:
    """What mem0 tells a model, as the system's message and the user's, with no memory and no history to compare.

    ``material`` stands in it word for word; ``instructions`` are what mem0 calls custom ones, above all its own.
    """
    user: str = _prompts.generate_additive_extraction_prompt(
        existing_memories=[], new_messages=material, custom_instructions=instructions
    )
    return _prompts.ADDITIVE_EXTRACTION_PROMPT, user
