"""A real key distribution centre for tests: Apache Kerby, started by Hadoop's MiniKdc, on loopback.

Python's `gssapi` and the library of Kerberos have to be there; they come with neither the project nor its jars.
"""

from __future__ import annotations

import importlib.util
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.certificates import HOST
from tests.hdfssupport import VERSION, hadoop_jars
from tests.servers import end, free_ports, own_java, retrieved

REALM = "EXAMPLE.COM"
PERSONS = ("pii", "ann")
"""Users: one whom HDFS takes for a superuser, and one of the rest."""
SERVICES = ("hdfs", "HTTP", "hive")
STARTS_WITHIN = 60.0

needs_kerberos = pytest.mark.skipif(
    importlib.util.find_spec("gssapi") is None,
    reason="needs Python's gssapi: install the headers of Kerberos, then pip install 'pii-tracer[kerberos]'",
)

_IVY = f"""\
<ivy-module version="2.0">
  <info organisation="tests" module="kdc"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->default">
    <dependency org="org.apache.hadoop" name="hadoop-minikdc" rev="{VERSION}" transitive="false"/>
  </dependencies>
</ivy-module>
"""
_PROPERTIES = """\
org.name=EXAMPLE
org.domain=COM
kdc.bind.address=127.0.0.1
kdc.port={port}
instance=Tests
transport=TCP
debug=false
max.ticket.lifetime=86400000
min.ticket.lifetime=1000
"""
_CONF = """\
[libdefaults]
 default_realm = {realm}
 udp_preference_limit = 1
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""


def principal(name: str) -> str:
    """Of a user, or of a service on this machine."""
    return f"{name}/{HOST}@{REALM}" if name in SERVICES else f"{name}@{REALM}"


@dataclass(frozen=True)
class Kdc:
    """A running centre. keytab: of every principal; conf: of its clients."""

    folder: Path
    keytab: Path
    conf: Path

    def client(self, cache: str, *, keytab: bool = True) -> Mapping[str, str]:
        """The environment of who gets tickets, into a cache of this name: by the keytab, or not at all."""
        found = {"KRB5_CONFIG": str(self.conf), "KRB5CCNAME": f"FILE:{self.folder / cache}"}
        return found | {"KRB5_CLIENT_KTNAME": str(self.keytab if keytab else self.folder / "none.keytab")}

    def kinit(self, cache: str, name: str, conf: Path | None = None) -> None:
        """A ticket of a user into a cache, as `kinit` puts it there."""
        import gssapi

        with environment({"KRB5_CONFIG": str(conf or self.conf)}):
            found = gssapi.Credentials(
                name=gssapi.Name(principal(name), gssapi.NameType.kerberos_principal),
                usage="initiate",
                store={"client_keytab": str(self.keytab), "ccache": f"FILE:{self.folder / cache}"},
            )
            assert found.lifetime > 0


@contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    """Variables, for a block."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in more.items():
            patched.setenv(name, value)
        yield


@contextmanager
def centre(folder: Path) -> Iterator[Kdc]:
    """A centre with its files in a folder."""
    (port,) = free_ports(1)
    folder.mkdir()
    (folder / "kdc.properties").write_text(_PROPERTIES.format(port=port), encoding="utf-8")
    kdc = Kdc(folder, folder / "all.keytab", folder / "client.conf")
    kdc.conf.write_text(_CONF.format(port=port, realm=REALM), encoding="utf-8")
    minikdc = retrieved("hadoop-minikdc", VERSION, ivy=_IVY, shared=False)
    command = [own_java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{minikdc}/*:{hadoop_jars()}/*"]
    command += ["org.apache.hadoop.minikdc.MiniKdc", str(folder), "kdc.properties", str(kdc.keytab)]
    command += [*(f"{service}/{HOST}" for service in SERVICES), *PERSONS]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder)
    try:
        until = time.monotonic() + STARTS_WITHIN
        while b"with principals" not in log.read_bytes():
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"the KDC does not answer: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield kdc
    finally:
        end(process)


def hadoop_xml(settings: Mapping[str, str]) -> str:
    """A file of Hadoop's settings."""
    lines = (f"<property><name>{k}</name><value>{escape(v)}</value></property>" for k, v in settings.items())
    return f"<configuration>{''.join(lines)}</configuration>"


def java_options(kdc: Kdc) -> list[str]:
    """How a process of Java gets its tickets there."""
    return [f"-Djava.security.krb5.conf={kdc.conf}", "-Djava.net.preferIPv4Stack=true"]
