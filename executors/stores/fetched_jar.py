"""Jars that no Maven coordinate of Spark's can name, since they have a classifier: fetched once by the Ivy of Spark."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from executors.engine.java_and_spark_paths import java, spark_jars
from executors.engine.version_profiles import Profile
from pii_tracer.model.errors import RunError

_SECONDS = 900
_WANTED = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="pii-tracer" module="jars"/>
  <dependencies>
    <dependency org={group} name={name} rev={version} transitive="false">
      <artifact name={name} type="jar" ext="jar" m:classifier={classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""


class ClassifiedJar(NamedTuple):
    """A jar in a Maven repository."""

    group: str
    name: str
    version: str
    classifier: str

    @property
    def file(self) -> str:
        """What its file is called."""
        return f"{self.name}-{self.version}-{self.classifier}.jar"


def place_of(jar: ClassifiedJar, profile: Profile) -> Path:
    """Where it lies once it was fetched, beside the jars that Spark fetches."""
    return Path.home() / profile.ivy / "jars" / jar.file


def fetched(jar: ClassifiedJar, profile: Profile, settings: str | None = None) -> Path:
    """As `place_of`, fetched where it is not there. settings: a file of Ivy's that names other repositories.

    Raises:
        RunError: it cannot be fetched.
    """
    there = place_of(jar, profile)
    folder = there.parent
    if not there.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".fetching-", dir=folder))
        try:
            _fetch(jar, fresh, settings)
            (fresh / jar.file).replace(there)  # whole or not at all
        except (OSError, subprocess.SubprocessError) as error:
            raise RunError(
                f"the jar {jar.file} cannot be fetched: {type(error).__name__}",
                where=str(folder),
                todo=(
                    "check the network, or set a mirror (`spark.jars.ivySettings` in the estate file, `spark.conf`); "
                    "or put the jar into this folder"
                ),
            ) from None
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return there


def _fetch(jar: ClassifiedJar, fresh: Path, settings: str | None) -> None:
    wanted = fresh / "ivy.xml"
    wanted.write_text(
        _WANTED.format(**{name: quoteattr(value) for name, value in jar._asdict().items()}), encoding="utf-8"
    )
    client = next(spark_jars().glob("ivy-*.jar"))
    words = ["-ivy", str(wanted), *(["-settings", settings] if settings else []), "-cache", str(fresh / "cache")]
    words += ["-confs", "default", "-warn", "-retrieve", f"{fresh}/[artifact]-[revision](-[classifier]).[ext]"]
    subprocess.run(
        [java(), "-jar", str(client), *words],
        check=True,
        timeout=_SECONDS,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
