# syntax=docker/dockerfile:1
# Two images of one build: `tidemark` (the default) and `crawler`, which has a browser and git, too.
#   docker build -t tidemark:cpu .
#   docker build --target crawler -t tidemark:crawler .
#   docker build --build-arg TORCH=cuda -t tidemark:cuda .
# To pin the base to the byte: docker buildx imagetools inspect python:3.11.15-slim-bookworm prints a
# digest; docker build --build-arg PYTHON=python:3.11.15-slim-bookworm@sha256:… .
ARG PYTHON=python:3.11.15-slim-bookworm

FROM ${PYTHON} AS build
ARG TORCH=cpu
WORKDIR /app
COPY pyproject.toml constraints.txt requirements.txt README.md LICENSE ./
# The CPU build of torch has an index of its own; the registry's build of the same version carries
# CUDA. --no-deps: that index lacks the pinned versions of what torch needs, which are there already.
RUN python -m venv --without-pip /opt/tidemark \
    && pip --python /opt/tidemark install --no-cache-dir --require-hashes --no-deps \
           -r requirements.txt \
    && case "$TORCH" in \
        cpu) pip --python /opt/tidemark install --no-cache-dir --no-deps -c constraints.txt torch \
                 --index-url https://download.pytorch.org/whl/cpu ;; \
        cuda) pip --python /opt/tidemark install --no-cache-dir -c constraints.txt torch ;; \
        *) echo "TORCH must be cpu or cuda, not $TORCH" >&2; exit 1 ;; \
    esac
COPY core core
COPY crawlers crawlers
COPY models models
COPY warehouse warehouse
COPY simulator simulator
COPY reports reports
COPY tasks tasks
COPY instruments instruments
COPY extras extras
COPY flows flows
COPY cli cli
COPY deployments deployments
# Editable, as everywhere: a flow's entrypoint is a file of /app. Compiled, because nobody may write
# there later.
RUN pip --python /opt/tidemark install --no-cache-dir --no-deps --no-build-isolation -e . \
    && python -m compileall -q /app

FROM ${PYTHON} AS base
RUN groupadd --gid 1000 tidemark \
    && useradd --create-home --uid 1000 --gid 1000 tidemark \
    && install --directory --owner tidemark --group tidemark /data
# Code and libraries are root's: what runs cannot change them.
COPY --from=build /opt/tidemark /opt/tidemark
COPY --from=build /app /app
ENV PATH=/opt/tidemark/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TIDEMARK_HOME=/data \
    TIDEMARK_WORK_DIR=/data/work \
    HF_HOME=/data/hub \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    DO_NOT_TRACK=1
VOLUME /data
# Where `tidemark demo` puts its folder; /app is root's.
WORKDIR /data
# By number, so that Kubernetes can see that it is not root.
USER 1000:1000
# No HEALTHCHECK here: what is healthy depends on the command, and stands in deployments/compose.yaml.
ENTRYPOINT ["tidemark"]
CMD ["--help"]

FROM base AS crawler
USER 0
# git: mirrors of monitored projects; chromium: sources that need a browser.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates chromium git \
    && rm -rf /var/lib/apt/lists/*
USER 1000:1000

FROM base AS tidemark
