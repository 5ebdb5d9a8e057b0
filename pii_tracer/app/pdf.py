"""A page as PDF through an installed Chromium; nothing is fetched, and nothing of the browser stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from pii_tracer.common.atomic_files import write_atomic
from pii_tracer.model.errors import ProofError

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_TIMEOUT = 120


def print_pdf(page: str, out: Path) -> None:
    """Print a self-contained HTML page.

    Raises:
        ProofError: no Chromium is installed, or it did not print.
    """
    browser = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if browser is None:
        raise ProofError(
            "Chromium was not found, so the PDF cannot be printed",
            todo="install Chromium, or open the HTML page in a browser and print it",
        )
    with tempfile.TemporaryDirectory(prefix="pii-tracer-print-") as folder:
        source, target = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8")
        command = [browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses to start as root otherwise
        command += [f"--user-data-dir={folder}/profile", "--no-pdf-header-footer", f"--print-to-pdf={target}"]
        try:
            subprocess.run([*command, source.as_uri()], timeout=_TIMEOUT, capture_output=True, check=True)
            data = target.read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            raise ProofError(
                f"Chromium did not print the page: {type(error).__name__}", where=browser, todo="print the HTML page"
            ) from None
        if not data.startswith(b"%PDF-"):
            raise ProofError("Chromium did not print a PDF", where=browser, todo="print the HTML page")
        write_atomic(out, data)
