#!/usr/bin/env bash
# The GPU benchmarks in one command, on a machine without network that has torch, transformers,
# accelerate, pyarrow and requests.
#
#   benchmarks/gpu.sh wheels DIR       on a machine with a network: fetch what the other one lacks
#   benchmarks/gpu.sh DIR [OPTIONS]    there: install it aside, run, print the section for RESULTS.md
# (DIR is absolute or counts from the root of the checkout.)
#
# The wheels are for Python 3.12 (PYTHON_VERSION) and together take about 33 MB: lm-eval and
# those of its needs that scoring imports, and those of ours that the machine may lack.
# OPTIONS are those of `python -m benchmarks.scoring.gpu`; PYTHON is the interpreter to use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}

packages=(
    lm-eval dill
    pydantic pydantic-core pydantic-settings annotated-types typing-inspection python-dotenv
    typing-extensions platformdirs zstandard botocore jmespath psutil nvidia-ml-py
)

if [[ ${1:-} == wheels && $# -eq 2 ]]; then
    mkdir -p "$2"
    platforms=()
    for platform in manylinux_2_28 manylinux_2_17 manylinux2014; do
        platforms+=(--platform "${platform}_x86_64")
    done
    exec "$python" -m pip download --quiet --disable-pip-version-check --no-deps \
        --only-binary=:all: --implementation cp --python-version "${PYTHON_VERSION:-3.12}" \
        "${platforms[@]}" -c constraints.txt --dest "$2" "${packages[@]}"
fi
if [[ $# -eq 0 || ! -d $1 ]]; then
    echo "usage: $0 wheels DIR | $0 DIR [OPTIONS]" >&2
    exit 2
fi

wheels=$1
shift
aside=$(mktemp -d)
trap 'rm -rf "$aside"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile \
    --no-cache-dir --target "$aside" "$wheels"/*.whl
PYTHONPATH="$aside:$PWD" HF_HUB_OFFLINE=1 "$python" -m benchmarks.scoring.gpu "$@"
