"""`review`: what changed SQL models do to erasability, as text, Markdown, annotations, SARIF or JSON."""

from __future__ import annotations

from pathlib import Path

import click

from pii_tracer.cli.options import format_option, show_or_write
from pii_tracer.model.model_review import ModelReview

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--base", required=True, help="branch, tag or commit that the change goes into")
@click.option("--head", help="branch, tag or commit with the change  [default: the working tree]")
@click.option("--repository", type=click.Path(path_type=Path), default=Path(), help="folder of the repository")
@click.option("--estate", "estate_file", type=_FILE, help="estate file with the subjects and retention classes")
@click.option("--lineage", type=_FILE, help="graph of a harvest (lineage.graph), for tables outside of the repository")
@click.option("--dialect", help="dialect of the SQL  [default: the estate's, or spark]")
@click.option("--manifest", type=_FILE, help="dbt's manifest.json of the change")
@click.option("--base-manifest", type=_FILE, help="dbt's manifest.json of the base")
@click.option("--out", type=click.Path(path_type=Path), help="write the report there instead of stdout")
@format_option("text", "json", "markdown", "github", "sarif")
def review(
    base: str,
    head: str | None,
    repository: Path,
    estate_file: Path | None,
    lineage: Path | None,
    dialect: str | None,
    manifest: Path | None,
    base_manifest: Path | None,
    out: Path | None,
    fmt: str,
) -> int:
    """Review changed SQL models before they are merged: can persons still be found and erased? Exit 4: denied."""
    from pii_tracer.app.model_review.changed_models import ReviewInputs, review_models

    inputs = ReviewInputs(estate_file, lineage, dialect, manifest, base_manifest)
    found = review_models(repository, base, head=head, inputs=inputs)
    show_or_write(rendered(found, fmt), out)
    return int(found.exit_code)


def rendered(found: ModelReview, fmt: str) -> str:
    """The review in one of the formats, with its final newline."""
    if fmt == "markdown":
        from reports.model_review.markdown_comment import render_markdown

        return render_markdown(found)
    if fmt == "sarif":
        from reports.model_review.sarif_report import render_sarif

        return render_sarif(found)
    from reports.model_review import text_and_json

    renderers = {"json": text_and_json.render_json, "github": text_and_json.render_annotations}
    return renderers.get(fmt, text_and_json.render_text)(found)
