# syntax=docker/dockerfile:1
# Two stages: one with pip's leavings, one with what runs. Rebuild for security updates; for an
# image that never changes, name the base by its digest: --build-arg PYTHON=python@sha256:…
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/dartboard
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY dartboard ./dartboard
RUN /opt/dartboard/bin/pip install --no-compile ".[serve,postgres,search,docs]"

FROM ${PYTHON} AS run
LABEL org.opencontainers.image.title="dartboard" \
      org.opencontainers.image.description="Retrieval of the passages that together say most about a question" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --system --gid 10001 dartboard \
 && useradd --system --uid 10001 --gid 10001 --home-dir /data --shell /usr/sbin/nologin dartboard \
 && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY --from=build /opt/dartboard /opt/dartboard
COPY --chmod=0755 docker/entrypoint.sh /usr/local/bin/entrypoint
# All that is written lies below /data and /tmp: the root file system may be read-only.
ENV PATH=/opt/dartboard/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    DARTBOARD_STORE=/data/index.dartboard \
    DARTBOARD_CACHE=/data/cache \
    DARTBOARD_KEYS=/data/keys.json \
    DARTBOARD_SERVE_HOME=/data/home
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/entrypoint", "dartboard"]
# Beyond loopback the service asks for a key; without a key file it says how to make one, and does not start.
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
