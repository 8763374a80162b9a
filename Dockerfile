# syntax=docker/dockerfile:1
# CPU by default; with CUDA:  docker build --build-arg TORCH=cuda -t tidemark:cuda .
FROM python:3.11-slim-bookworm

ARG TORCH=cpu

# git: mirrors of monitored projects; chromium: sources that need a browser.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates chromium git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 tidemark

WORKDIR /app
COPY pyproject.toml constraints.txt README.md ./
# The CPU build has an index of its own; the registry's build of the same version carries CUDA.
# --no-deps: that index lacks the pinned versions of what torch needs; they come with tidemark.
RUN case "$TORCH" in \
        cpu) pip install --no-cache-dir --no-deps -c constraints.txt torch \
                 --index-url https://download.pytorch.org/whl/cpu ;; \
        cuda) pip install --no-cache-dir -c constraints.txt torch ;; \
        *) echo "TORCH must be cpu or cuda, not $TORCH" >&2; exit 1 ;; \
    esac
COPY core core
COPY crawlers crawlers
COPY models models
COPY warehouse warehouse
COPY simulator simulator
COPY reports reports
COPY tasks tasks
COPY flows flows
COPY deployments deployments
RUN pip install --no-cache-dir -c constraints.txt -e . \
    && install --directory --owner tidemark --group tidemark /data

USER tidemark
ENV TIDEMARK_HOME=/data \
    HF_HOME=/data/hub
VOLUME /data
# Where `tidemark demo` puts its folder; /app is root's.
WORKDIR /data
ENTRYPOINT ["tidemark"]
CMD ["--help"]
