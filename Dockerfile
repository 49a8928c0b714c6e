# One image for workers, janitors and gateways. Target `core` has no dependency beside Python, `full` has every extra:
#   docker build --target core -t taskyard:core .
#   docker build --target full -t taskyard:full .
# Wheels in a folder `wheels` beside this file take the place of a package index, which is not asked then.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=/src/constraints.txt PIP_FIND_LINKS=/wheels
WORKDIR /src
# LICENSE is there so that this copies something also where there is no folder `wheels`.
COPY LICENSE wheel[s] /wheels/
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# pip stays behind in /pip: the image needs none.
RUN python3 -m venv /pip \
    && python3 -m venv --without-pip /opt/taskyard \
    && if ls /wheels/*.whl > /dev/null 2>&1; then /pip/bin/pip config --global set global.no-index true; fi \
    && /pip/bin/pip wheel --no-deps --wheel-dir /built .

FROM build AS build-core
RUN /pip/bin/pip --python /opt/taskyard/bin/python install --no-deps /built/*.whl

FROM build AS build-full
RUN /pip/bin/pip --python /opt/taskyard/bin/python install "$(ls /built/*.whl)[all]"

FROM ${BASE} AS runtime
# Any user may run it, as long as it is in group 0: `docker run --user 4711` is. A volume that is first mounted at one of these
# belongs to that group, too.
RUN mkdir -p /app/shared /secrets && chown -R 10001:0 /app /secrets && chmod 2775 /app /app/shared /secrets
# A spool would go with the container: name a folder of a volume by $TASKYARD_SPOOL to have one.
ENV PATH=/opt/taskyard/bin:$PATH HOME=/tmp TASKYARD_SPOOL=off
WORKDIR /app
USER 10001:0
CMD ["taskyard", "--help"]

FROM runtime AS core
COPY --from=build-core /opt/taskyard /opt/taskyard

FROM runtime AS full
COPY --from=build-full /opt/taskyard /opt/taskyard
