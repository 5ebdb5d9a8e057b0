"""What a pull request, a clone or a careless hand can hold: each fails closed, or is said."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pii_tracer.model.errors import UsageError
from tests.model_review.dbt_project import write_project
from tests.model_review.repositories import Repo, brief

STAGED = "models/staging/stg_customers_0.sql"
DIM = "models/marts/dim_customers_0.sql"
MAILING = "models/marts/mailing_0.sql"
NEW = "models/marts/new.sql"
WITHOUT_KEY = "select email from {{ ref('stg_customers_0') }}\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    repo = Repo(tmp_path_factory.mktemp("shop"))
    write_project(repo.root, 8)
    return repo.commit()


@pytest.fixture
def shop(built: Repo) -> Repo:
    built.clean()
    return built


def kinds(shop: Repo) -> set[tuple[str, str, str]]:
    return {(level, kind, file) for level, kind, file, _ in brief(shop.review())}


@pytest.mark.parametrize("ref", ["nowhere", "--output=x", "-", "", "main\n", "main..HEAD", "HEAD^{tree}"])
def test_a_name_that_is_no_commit_is_refused(shop: Repo, ref: str) -> None:
    with pytest.raises(UsageError):
        shop.review(ref)
    with pytest.raises(UsageError):
        shop.review("main", ref)
    assert not (shop.root / "x").exists()


def test_a_folder_without_a_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pii_tracer.app.model_review.changed_models import review_models

    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", "")
    with pytest.raises(UsageError, match="not the working tree"):
        review_models(tmp_path, "main")
    with pytest.raises(UsageError, match="not a folder"):
        review_models(tmp_path / "gone", "main")


def test_a_shallow_clone_says_what_it_lacks(shop: Repo, tmp_path: Path) -> None:
    shop.git("checkout", "-q", "-B", "side")
    Repo.put(shop, {NEW: WITHOUT_KEY}).commit()
    try:
        subprocess.run(
            ["git", "clone", "-q", "--depth", "1", "-b", "side", f"file://{shop.root}", tmp_path / "c"], check=True
        )
        clone = Repo(tmp_path / "c")
        with pytest.raises(UsageError, match="does not contain this commit") as refused:
            clone.review("main")
        assert "fetch-depth: 0" in str(refused.value)
        clone.git("fetch", "-q", "--depth", "1", "origin", "main:main")
        with pytest.raises(UsageError, match="shallow"):
            clone.review("main")
    finally:
        shop.git("checkout", "-q", "main")


def test_what_the_base_got_since_is_not_the_changes_fault(shop: Repo) -> None:
    shop.git("checkout", "-q", "-B", "side")
    shop.git("checkout", "-q", "main")
    first = shop.git("rev-parse", "HEAD")
    shop.put({NEW: WITHOUT_KEY}).commit()
    try:
        assert brief(shop.review("main", "side")) == []
        assert brief(shop.review("side", "main")) == [("error", "copy-without-key", NEW, 1)]
    finally:
        shop.git("reset", "-q", "--hard", first)


def test_git_runs_nothing_of_the_repository(shop: Repo, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hook = shop.root / ".git" / "hooks" / "fsmonitor"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    shop.git("config", "core.fsmonitor", str(hook))
    shop.git("config", "diff.external", str(hook))
    try:
        shop.git("status")
        assert ran.exists(), "git itself runs it"
        ran.unlink()
        shop.review()
        assert not ran.exists()
    finally:
        shop.git("config", "--unset", "core.fsmonitor")
        shop.git("config", "--unset", "diff.external")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "unreadable"),
        (b"  \n", "unreadable"),
        (b"select '\xff' as a", "unreadable"),
        (b"\x7fELF\0\0", "unreadable"),
        (b"<<<<<<< HEAD\nselect 1 as a\n=======\nselect 2 as a\n>>>>>>> side\n", "unreadable"),
        (b"select a b c d from from", "lineage-lost"),
        (b"select {{ undefined_thing }} as a", "lineage-lost"),
        (b"select {% if %}", "lineage-lost"),
        (b"select {{ dbt_utils.star(ref('stg_customers_0')) }} from x", "lineage-lost"),
        (b"select a from {{ ref('nowhere') }}", "lineage-lost"),
        (b"{% for a in range(1000000000) %}{% for b in range(1000000000) %}x{% endfor %}{% endfor %}", "lineage-lost"),
        (b"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "lineage-lost"),
        (b"{% set x = run_query('drop table t') %}select 1 as a", "lineage-lost"),
        (b"{{ ''.__class__.__mro__ }}", "lineage-lost"),
        (b"{{ 'x' * 1000000000 }}", "lineage-lost"),
        (b"{{ " + b"(" * 5000 + b"1" + b")" * 5000 + b" }}", "lineage-lost"),
        (b"x" * 5_000_001, "unreadable"),
    ],
    ids=range(17),
)  # fmt: skip
def test_a_model_that_nobody_can_read_is_denied(shop: Repo, content: bytes, kind: str) -> None:
    shop.put({DIM: content})
    found = shop.review()
    assert {(f.severity.value, f.kind.value, f.file) for f in found.findings} == {("error", kind, DIM)}
    shop.clean()
    shop.put({NEW: content})
    assert kinds(shop) == {("error", kind, NEW)}, "a new one, too"


def test_what_reads_an_unreadable_model_is_not_called_clean(shop: Repo) -> None:
    shop.put({STAGED: "select {{ unknown() }}", NEW: WITHOUT_KEY})
    found = kinds(shop)
    assert ("error", "lineage-lost", STAGED) in found
    assert ("error", "lineage-lost", NEW) in found


def test_line_ends_and_a_byte_order_mark_change_nothing(shop: Repo) -> None:
    text = (shop.root / DIM).read_bytes()
    shop.put({DIM: b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n")})
    found = shop.review()
    assert (found.findings, found.changed) == ((), ())


def test_symbolic_links_are_not_followed(shop: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "outside.sql"
    outside.write_text(WITHOUT_KEY)
    (shop.root / NEW).symlink_to(outside)
    assert kinds(shop) == {("error", "unreadable", NEW)}
    shop.git("add", "-A")
    shop.git("commit", "-qm", "link")
    try:
        assert brief(shop.review("HEAD~1", "HEAD")) == [("error", "unreadable", NEW, 1)]
        shop.git("rm", "-q", NEW)
        (shop.root / "models" / "linked").symlink_to(tmp_path)
        assert {f.file for f in shop.review().findings} == set(), "git lists a linked folder as one name"
    finally:
        shop.git("reset", "-q", "--hard", "HEAD~1")


def test_a_folder_that_became_a_link_is_not_followed(shop: Repo, tmp_path: Path) -> None:
    marts = shop.root / "models" / "marts"
    (tmp_path / "marts").mkdir()
    for file in marts.iterdir():
        (tmp_path / "marts" / file.name).write_text(file.read_text())
        file.unlink()
    marts.rmdir()
    marts.symlink_to(tmp_path / "marts")
    assert {f.kind.value for f in shop.review().findings} == {"unreadable"}


@pytest.mark.parametrize(
    "name",
    [
        "models/marts/-rf.sql",
        "models/marts/a b'\".sql",
        "models/marts/ünï.sql",
        "models/marts/a\nb.sql",
        "models/marts/`x`.sql",
    ],
)
def test_odd_names_of_files_are_read_or_refused(shop: Repo, name: str) -> None:
    shop.put({name: WITHOUT_KEY})
    (found,) = shop.review().findings
    assert found.file == name
    assert found.severity.value == "error"


def test_a_name_that_is_not_utf8(shop: Repo) -> None:
    place = shop.root / os.fsdecode(b"models/\xff.sql")
    place.write_text(WITHOUT_KEY)
    try:
        (found,) = shop.review().findings
        assert found.file == "models/\\xff.sql"
    finally:
        place.unlink()


def test_renamed_and_deleted_models_say_that_their_tables_stay(shop: Repo) -> None:
    (shop.root / DIM).rename(shop.root / "models/marts/people.sql")
    assert brief(shop.review()) == [("warning", "model-removed", DIM, 1)]
    shop.clean()
    (shop.root / "models/marts/products_0.sql").unlink()
    assert brief(shop.review()) == [], "nobody's rows were in it"


def test_a_changed_macro_changes_every_model_that_calls_it(shop: Repo) -> None:
    macros = (shop.root / "macros/shop.sql").read_text()
    shop.put({"macros/shop.sql": macros.replace("'shop'", "'other'")})
    assert shop.review().changed == (MAILING,)
    shop.put({"macros/shop.sql": macros.replace("'shop'", "run_query('x')").replace("sha2(", "{{ ask() }}(")})
    assert kinds(shop) == {("error", "lineage-lost", MAILING)}
    shop.put({"macros/shop.sql": "<<<<<<<"})
    assert ("error", "lineage-lost", MAILING) in kinds(shop)


def test_the_sources_file_counts(shop: Repo) -> None:
    sources = (shop.root / "models/sources.yml").read_text()
    shop.put({"models/sources.yml": sources.replace("          - {name: email, data_type: string}\n", "")})
    assert ("error", "lineage-lost", STAGED) in kinds(shop), "a column that the source has no more"
    shop.put({"models/sources.yml": sources + "\n  ]["})
    assert ("error", "unreadable", "models/sources.yml") in kinds(shop)
    shop.put({"models/sources.yml": sources.replace("- name: orders", "- name: tickets")})
    assert ("error", "lineage-lost", "models/staging/stg_orders_0.sql") in kinds(shop)
    shop.put({"models/sources.yml": sources + "# a comment\n"})
    assert brief(shop.review()) == []


def test_snapshots_and_incremental_models_are_read(shop: Repo) -> None:
    snapshot = (shop.root / "snapshots/customers_history.sql").read_text()
    shop.put({"snapshots/customers_history.sql": snapshot.replace("select customer_id, ", "select ")})
    assert brief(shop.review()) == [("error", "key-dropped", "snapshots/customers_history.sql", 3)]
    shop.clean()
    orders = "models/marts/fct_orders_0.sql"
    text = (shop.root / orders).read_text()
    branch = text.replace("{% if is_incremental() %}", "{% if is_incremental() %} and 1 = 1 {% else %}")
    branch = branch.replace(
        "select o.order_id, o.customer_id,", "select {% if not is_incremental() %}o.order_id, o.customer_id,{% endif %}"
    )
    shop.put({orders: branch})
    assert [(k, f) for _, k, f, _ in brief(shop.review())] == [("key-dropped", orders)], "one branch has no key"


def test_a_view_that_becomes_a_table_is_a_new_copy(shop: Repo) -> None:
    shop.put({"models/staging/contacts.sql": WITHOUT_KEY})
    assert brief(shop.review()) == [], "a view stores nothing"
    project = (shop.root / "dbt_project.yml").read_text()
    shop.put({"dbt_project.yml": project.replace("staging: {+materialized: view}", "staging: {+materialized: table}")})
    assert brief(shop.review()) == [("error", "copy-without-key", "models/staging/contacts.sql", 1)]


def test_a_python_model_cannot_be_followed(shop: Repo) -> None:
    shop.put({"models/marts/scores.py": "def model(dbt, session):\n    return dbt.ref('dim_customers_0')\n"})
    assert brief(shop.review()) == [("error", "lineage-lost", "models/marts/scores.py", 1)]


def test_hooks_are_statements_too(shop: Repo) -> None:
    text = (shop.root / DIM).read_text()
    copy = "insert into outside.mail select email from {{ ref('stg_customers_0') }}"
    shop.put({DIM: '{{ config(post_hook="' + copy + '") }}\n' + text})
    assert ("error", "copy-without-key", DIM) in kinds(shop)
    shop.put({DIM: '{{ config(post_hook="optimize {{ this }}") }}\n' + text})
    assert brief(shop.review()) == []
    shop.put({DIM: '{{ config(post_hook="{{ grant_all() }}") }}\n' + text})
    assert kinds(shop) == {("error", "lineage-lost", DIM)}
    shop.clean()
    project = (shop.root / "dbt_project.yml").read_text()
    shop.put({"dbt_project.yml": f'{project}on-run-end:\n  - "{copy}"\n'})
    assert ("error", "copy-without-key", "dbt_project.yml") in kinds(shop)


def test_snapshots_in_yaml_and_own_materializations(shop: Repo) -> None:
    snapshots = "snapshots:\n  - name: people_history\n    relation: {}\n    config: {{unique_key: email}}\n"
    shop.put({"models/contacts.sql": WITHOUT_KEY, "snapshots/people.yml": snapshots.format("ref('contacts')")})
    assert brief(shop.review()) == [("error", "copy-without-key", "snapshots/people.yml", 1)]
    shop.clean()
    shop.put({NEW: "{{ config(materialized='to_vault') }}\nselect customer_id from {{ ref('stg_customers_0') }}\n"})
    assert brief(shop.review()) == [("error", "lineage-lost", NEW, 1)]
