# The server: onnxruntime and FastAPI, without torch, a compiler or an account that may write.
#
#   docker build -t limelight:gpu .                          for a host with an NVIDIA GPU
#   docker build -t limelight:cpu --build-arg EXTRA=cpu .    for any other
#   docker build -t limelight:gpu --build-arg CUDA=12 .      for a GPU whose driver is below 580
#   docker build -t limelight:export --build-arg EXTRA=cpu --target exporter .
ARG PYTHON=3.13

FROM python:${PYTHON}-slim-trixie AS build
# onnxruntime for CUDA (gpu) or for the processor (cpu)
ARG EXTRA=gpu
# 13, or 12 with the last onnxruntime that was built for it
ARG CUDA=13
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
RUN python -m venv --without-pip /opt/limelight
# Dependencies first: their layer, by far the largest, stays as it is while only our code changes.
COPY pyproject.toml constraints.txt deploy/requirements.py deploy/pins.py deploy/cuda12.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python requirements.py "$EXTRA" > requirements.txt && \
    python pins.py "$CUDA" > pins.txt && \
    pip --python /opt/limelight/bin/python install -c pins.txt -r requirements.txt
COPY LICENSE README.md ./
COPY model model
COPY export export
COPY service service
RUN --mount=type=cache,target=/root/.cache/pip \
    pip --python /opt/limelight/bin/python install --no-deps --prefix /opt/ours .

FROM python:${PYTHON}-slim-trixie AS runtime
# An account without a home or a password.
RUN groupadd --gid 10001 limelight && \
    useradd --uid 10001 --gid limelight --no-log-init --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin limelight
# Models are mounted at /models; while it holds none, the small demo model is served.
ENV PATH=/opt/limelight/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ORT_DISABLE_TELEMETRY=1 \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    LIMELIGHT_HOST=0.0.0.0 \
    LIMELIGHT_PORT=8000 \
    LIMELIGHT_MODELS=/models \
    LIMELIGHT_DEMO=true
COPY --from=build /opt/limelight /opt/limelight
COPY --from=build /opt/ours /opt/limelight
COPY deploy/healthcheck.py /opt/limelight/
WORKDIR /models
# The commit that the image is made of, and when: --build-arg REVISION="$(git rev-parse HEAD)"
ARG REVISION=""
ARG CREATED=""
LABEL org.opencontainers.image.title="Limelight" \
      org.opencontainers.image.description="A server of multi-head attention" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-I", "-S", "/opt/limelight/healthcheck.py"]
ENTRYPOINT ["limelight-serve"]

# The integration tests, for a server that runs elsewhere: LIMELIGHT_TEST_URL=http://host:port
FROM runtime AS test
USER 0
WORKDIR /tests
COPY pyproject.toml constraints.txt deploy/requirements.py ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python requirements.py client > requirements.txt && \
    pip --python /opt/limelight/bin/python install -c constraints.txt -r requirements.txt
COPY tests tests
USER 10001:10001
HEALTHCHECK NONE
ENTRYPOINT ["python", "-m", "pytest", "-p", "no:cacheprovider"]
CMD ["tests/integration", "tests/clients"]

# Turns checkpoints into models. With torch, for the processor unless TORCH_INDEX names another index
# (empty: pip's own); it needs no GPU and no account of its own, so it runs as whoever calls.
FROM runtime AS exporter
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
USER 0
WORKDIR /build
COPY pyproject.toml constraints.txt deploy/requirements.py ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python requirements.py export > requirements.txt && \
    pip --python /opt/limelight/bin/python install -c constraints.txt -r requirements.txt \
        ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"}
# torch asks for the name and the home of its account, and finds neither for an unknown number.
ENV HOME=/tmp \
    USER=limelight
WORKDIR /data
USER 10001:10001
HEALTHCHECK NONE
ENTRYPOINT ["limelight-export"]
CMD ["--help"]

# Last, and so what `docker build` makes when it is given no target.
FROM runtime AS server
