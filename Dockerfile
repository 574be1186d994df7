# The server: onnxruntime and FastAPI, without torch, a compiler or an account that may write.
#
#   docker build -t limelight:gpu .                          for a host with an NVIDIA GPU
#   docker build -t limelight:cpu --build-arg EXTRA=cpu .    for any other
ARG PYTHON=3.13

FROM python:${PYTHON}-slim-trixie AS build
# onnxruntime for CUDA (gpu) or for the processor (cpu)
ARG EXTRA=gpu
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
RUN python -m venv --without-pip /opt/limelight
# Dependencies first: their layer, by far the largest, stays as it is while only our code changes.
COPY pyproject.toml constraints.txt deploy/requirements.py ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python requirements.py "$EXTRA" > requirements.txt && \
    pip --python /opt/limelight/bin/python install -c constraints.txt -r requirements.txt
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
LABEL org.opencontainers.image.title="Limelight" \
      org.opencontainers.image.description="A server of multi-head attention" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
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
CMD ["tests/integration"]

# Last, and so what `docker build` makes when it is given no target.
FROM runtime AS server
