"""`fm import` and `fm export`, against a service that plays its shapes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firm_memory_client import files
from firm_memory_client.files import found_in, is_wanted, read_all
from firm_memory_client.markers import BrokenMarkers, merged, span_of
from firm_memory_client.models import ExportedFile
from tests.client.conftest import git
from tests.client.playing import playing

BLOCK = "<!-- firm-memory:begin repo=acme/pay -->\n- Amounts are integers of cents. [M-1]\n<!-- firm-memory:end -->"
EMPTY = BLOCK.replace("- Amounts are integers of cents. [M-1]", "Nothing was approved yet that holds here.")
NEWER = BLOCK.replace("[M-1]", "[M-1]\n- Retries back off. [M-2]")


# --- which files ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "path",
    [
        *("AGENTS.md", "services/api/agents.md", "CLAUDE.md", ".cursorrules", ".cursor/rules/style.mdc"),
        *(".github/copilot-instructions.md", ".github/instructions/py.instructions.md"),
        *("docs/adr/0001-queues.md", "docs/decisions/12-x.rst", "peps/pep-0008.rst"),
    ],
)
def test_what_agents_read_is_wanted(path):
    assert is_wanted(path)


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "docs/adr/README.md",
        "docs/adr/template.md",
        "docs/0001-x.md",
        "style.mdc",
        "x.instructions.md",
        "a/AGENTS.mdx",
    ],
)
def test_what_nobody_asked_for_is_not(path):
    assert not is_wanted(path)


def test_what_git_ignores_is_not_found(checkout):
    write(checkout, "AGENTS.md", "- x")
    write(checkout, "node_modules/dep/AGENTS.md", "- theirs")
    write(checkout, ".gitignore", "node_modules\n")
    write(checkout, "docs/adr/0001-a.md", "# A")
    assert found_in(checkout) == ["AGENTS.md", "docs/adr/0001-a.md"]
    assert found_in(checkout, [Path("docs")]) == ["docs/adr/0001-a.md"]
    assert found_in(checkout, [Path(".gitignore")]) == [".gitignore"]
    with pytest.raises(ValueError, match="outside of"):
        found_in(checkout, [checkout.parent])
    with pytest.raises(ValueError, match="There is no"):
        found_in(checkout, [Path("gone.md")])


def test_a_folder_without_git_is_walked(tmp_path):
    folder = tmp_path / "plain"
    write(folder, "AGENTS.md", "- x")
    write(folder, "node_modules/dep/AGENTS.md", "- theirs")
    assert found_in(folder) == ["AGENTS.md"]


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- import -----------------------------------------------------------------------------------------------------------
def taken(asked):
    counts = {"statements": 2, "new": 1, "joined": 0, "unchanged": 1, "changed": 0, "gone": 0}
    skipped = [{"line": 3, "reason": "It is \x1b[31mcode."}]
    reports = [
        {"path": each["path"], "format": "agents_md", "skipped": skipped} | counts for each in asked.body["files"]
    ]
    return 200, {"files": reports, "candidates": [], "notes": ["One was there before."]}


def test_the_files_of_the_checkout_are_sent_with_its_commit(checkout, fm, monkeypatch):
    write(checkout, "AGENTS.md", "- x\r\n")
    write(checkout, "docs/adr/0001-a.md", "# Ä")
    with playing(files_import=taken) as service:
        ended = fm("import", env={"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_bot_x"})
    (asked,) = service.asked
    assert asked.body["repo"] == "https://git.example.com/acme/pay"
    assert asked.body["files"] == [
        {"path": "AGENTS.md", "content": "- x\r\n"},
        {"path": "docs/adr/0001-a.md", "content": "# Ä"},
    ]
    assert len(asked.body["commit"]) == 40
    assert asked.headers["authorization"] == "Bearer fm_bot_x"
    assert asked.headers["idempotency-key"]
    assert (ended.code, asked.body["dry_run"]) == (0, False)
    assert "docs/adr/0001-a.md" in ended.out
    assert "AGENTS.md:3: It is \\x1b[31mcode." in ended.out
    assert "Sent 2 of 2 files." in ended.err
    assert "One was there before." in ended.err


def test_a_dry_run_says_so(checkout, fm):
    write(checkout, "AGENTS.md", "- x")
    with playing(files_import=taken) as service:
        env = {"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_bot_x"}
        assert "this was a dry run" in fm("import", "--dry-run", env=env).out
        assert service.asked[0].body["dry_run"] is True
        told = fm("import", "AGENTS.md", "--json", "--repo", "acme/other", env=env)
    assert told.data["files"][0]["path"] == "AGENTS.md"
    assert service.asked[1].body["repo"] == "acme/other"


def test_what_cannot_be_sent_is_said_and_the_rest_is_sent(checkout, fm, tmp_path):
    outside = write(tmp_path, "secrets/AGENTS.md", "- the password")
    write(checkout, "AGENTS.md", "- x")
    (checkout / "a").mkdir()
    (checkout / "a" / "AGENTS.md").symlink_to(outside)
    write(checkout, "b/AGENTS.md", b"\xff\xfe")
    write(checkout, "c/AGENTS.md", "x" * (512 * 1024 + 1))
    with playing(files_import=taken) as service:
        ended = fm("import", "--json", env={"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_bot_x"})
    assert [each["path"] for each in service.asked[0].body["files"]] == ["AGENTS.md"]
    assert {each["path"]: each["reason"] for each in ended.data["left_out"]} == {
        "a/AGENTS.md": "It is a link to outside of the checkout.",
        "b/AGENTS.md": "It is not UTF-8.",
        "c/AGENTS.md": "It is larger than 512 KiB.",
    }


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["", "dry run"])
@pytest.mark.parametrize(
    ("counts", "code"),
    [
        pytest.param([{"refused": 0, "not_taken": 0}] * 2, 0, id="all taken"),
        pytest.param([{"refused": 1, "not_taken": 0}, {"refused": 0, "not_taken": 0}], 3, id="refused"),
        pytest.param([{"refused": 0, "not_taken": 0}, {"refused": 0, "not_taken": 7}], 3, id="no room in the second"),
        pytest.param([{}, {}], 0, id="an older service"),
    ],
)
def test_an_import_says_by_its_code_whether_all_was_taken(checkout, fm, monkeypatch, counts, code, dry):
    monkeypatch.setattr("firm_memory_client.client.MAX_IMPORT_FILES", 1)
    write(checkout, "AGENTS.md", "- x")
    write(checkout, "CLAUDE.md", "- y")
    answers = iter([*counts, *counts])
    with playing(files_import=lambda asked: (200, taken(asked)[1] | next(answers))) as service:
        env = {"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_bot_x"}
        assert fm("import", *dry, env=env).code == code
        told = fm("import", "--json", *dry, env=env)
    assert told.code == code
    assert (told.data["refused"], told.data["not_taken"]) == tuple(
        sum(each.get(name, 0) for each in counts) for name in ("refused", "not_taken")
    )


def test_a_file_that_cannot_be_read_is_said_and_the_rest_is_sent(checkout, fm, monkeypatch):
    write(checkout, "AGENTS.md", "- x")
    write(checkout, "CLAUDE.md", "- closed")
    opened = Path.open

    def guarded(path, *arguments, **options):
        if path.name == "CLAUDE.md":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", guarded)
    with playing(files_import=taken) as service:
        ended = fm("import", env={"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_bot_x"})
    assert [each["path"] for each in service.asked[0].body["files"]] == ["AGENTS.md"]
    assert "CLAUDE.md: left out. It cannot be read: Permission denied." in ended.err


def test_nothing_to_import_is_no_question(checkout, fm):
    ended = fm("import", "--json", env={"FIRM_MEMORY_TOKEN": "fm_bot_x"})
    assert (ended.code, ended.data["files"]) == (1, [])


def test_an_import_without_a_repository_is_refused(tmp_path, fm, monkeypatch):
    write(tmp_path / "plain", "AGENTS.md", "- x")
    monkeypatch.chdir(tmp_path / "plain")
    ended = fm("import", env={"FIRM_MEMORY_TOKEN": "fm_bot_x"})
    assert (ended.code, "No repository is checked out here" in ended.err, "--repo" in ended.err) == (2, True, True)


def test_a_refusal_names_the_field(checkout, fm):
    write(checkout, "AGENTS.md", "- x")
    errors = [{"field": "files[0].content", "message": "It is too long."}]
    refused = (422, {"code": "invalid", "detail": "Some values will not do.", "errors": errors})
    with playing(files_import=lambda _: refused) as service:
        ended = fm("import", env={"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_bot_x"})
    assert ended.code == 3
    assert "files[0].content: It is too long." in ended.err


# --- export -----------------------------------------------------------------------------------------------------------
def exporting(*exported: dict[str, str]):
    return playing(export_files=lambda _: (200, {"repo": "acme/pay", "files": list(exported), "note": ""}))


def not_known(block: str = EMPTY):
    """As the service answers for a repository that it does not know."""
    answer = {"repo": "acme/pya", "known": False, "files": [a_file(block=block)], "note": "For the firm alone."}
    return playing(export_files=lambda _: (200, answer))


def a_file(path: str = "AGENTS.md", block: str = BLOCK, whole: str | None = None) -> dict[str, str]:
    return {"path": path, "block": block, "whole": f"{block}\n" if whole is None else whole}


def export(fm, service, *arguments: str):
    return fm("export", *arguments, env={"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_bot_x"})


def test_a_file_is_made_and_then_left_alone(checkout, fm):
    with exporting(
        a_file(), a_file(".cursor/rules/m.mdc", whole=f"---\nalwaysApply: true\n---\n\n{BLOCK}\n")
    ) as service:
        first = export(fm, service, "--per-folder", "--max-lines", "90")
        made = [(checkout / "AGENTS.md").stat().st_ino, (checkout / "AGENTS.md").read_bytes()]
        again = export(fm, service)
        checked = export(fm, service, "--check")
    assert service.asked[0].query == {
        "repo": ["https://git.example.com/acme/pay"],
        "format": ["agents_md"],
        "max_lines": ["90"],
        "per_folder": ["true"],
    }
    assert (first.code, again.code, checked.code) == (0, 0, 0)
    assert first.out.split() == ["written", "AGENTS.md", "written", ".cursor/rules/m.mdc"]
    assert again.out.split() == ["unchanged", "AGENTS.md", "unchanged", ".cursor/rules/m.mdc"]
    assert made == [(checkout / "AGENTS.md").stat().st_ino, (checkout / "AGENTS.md").read_bytes()]
    assert (checkout / ".cursor/rules/m.mdc").read_text().startswith("---\nalwaysApply: true\n")


def test_what_people_wrote_around_the_block_stays(checkout, fm):
    text = f"\ufeff# Ours\r\n\r\n{BLOCK}\r\nBelow.\r\n".replace("\r\n", "\n").replace("\n", "\r\n")
    path = write(checkout, "AGENTS.md", text)
    path.chmod(0o640)
    with exporting(a_file(block=NEWER)) as service:
        export(fm, service)
    new = NEWER.replace("\n", "\r\n")
    assert path.read_bytes().decode() == f"\ufeff# Ours\r\n\r\n{new}\r\nBelow.\r\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert not [each for each in checkout.iterdir() if each.name.startswith(".AGENTS")]


def test_a_check_shows_the_difference_and_writes_nothing(checkout, fm):
    path = write(checkout, "AGENTS.md", f"# Ours\n\n{BLOCK}\n")
    with exporting(a_file(block=NEWER)) as service:
        ended = export(fm, service, "--check")
        told = export(fm, service, "--check", "--json")
    assert (ended.code, told.code) == (1, 1)
    assert "+- Retries back off. [M-2]" in ended.out
    assert told.data["files"][0]["state"] == "stale"
    assert path.read_text() == f"# Ours\n\n{BLOCK}\n"


@pytest.mark.parametrize("options", [(), ("--check",), ("--json",), ("--check", "--json")], ids=" ".join)
@pytest.mark.parametrize("block", [EMPTY, NEWER], ids=["nothing holds", "something holds for the firm"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="no file"),
        pytest.param("", id="empty"),
        pytest.param("# Ours\n", id="no block"),
        pytest.param(f"# Ours\n\n{BLOCK}\n", id="a block"),
        pytest.param(f"\ufeff# Ours\r\n\r\n{BLOCK}\r\n".replace("\n", "\r\n"), id="of Windows"),
        pytest.param("<!-- firm-memory:begin -->\n", id="broken"),
    ],
)
def test_a_repository_that_is_not_known_changes_no_file_and_says_so(checkout, fm, text, block, options):
    path = checkout / "AGENTS.md"
    if text is not None:
        write(checkout, "AGENTS.md", text)
    with not_known(block) as service:
        ended = export(fm, service, "--repo", "acme/pya", *options)
    assert ended.code == 1
    assert "acme/pya is not known to" in ended.err
    assert "no file was changed" in ended.err
    assert (path.read_bytes().decode() if path.exists() else None) == text
    if "--json" in options:
        assert (ended.data["known"], ended.data["files"]) == (False, [])
        assert "no file was changed" in ended.data["note"]
    else:
        assert ended.out == ""


@pytest.mark.parametrize("command", ["export", "import", "context"])
@pytest.mark.parametrize("repo", ["", " "], ids=repr)
def test_a_repository_without_a_name_is_not_the_one_checked_out(checkout, fm, command, repo):
    """As where a variable of a job is not set."""
    text = f"# Ours\n\n- x\n\n{BLOCK}\n"
    path = write(checkout, "AGENTS.md", text)
    blank = (
        422,
        {"code": "invalid", "detail": "repo will not do.", "errors": [{"field": "repo", "message": "Blank."}]},
    )

    def answering(asked):
        named = asked.body["repo"] if command == "import" else asked.query.get("repo", [""])[0]
        return blank if not named.strip() else (200, {"repo": named, "files": [a_file(block=NEWER)], "note": ""})

    with playing(files_import=answering, export_files=answering, context=answering) as service:
        ended = fm(command, "--repo", repo, env={"FIRM_MEMORY_URL": service.url, "FIRM_MEMORY_TOKEN": "fm_bot_x"})
    assert (ended.code, path.read_text()) == (3, text)


@pytest.mark.parametrize("more", [{"known": True}, {}], ids=["known", "an older service"])
def test_a_repository_of_which_nothing_holds_gets_an_empty_block(checkout, fm, more):
    path = write(checkout, "AGENTS.md", f"# Ours\n\n{BLOCK}\n")
    answer = {"repo": "acme/pay", "files": [a_file(block=EMPTY)], "note": ""} | more
    with playing(export_files=lambda _: (200, answer)) as service:
        stale, ended = export(fm, service, "--check"), export(fm, service)
    assert (stale.code, ended.code) == (1, 0)
    assert path.read_text() == f"# Ours\n\n{EMPTY}\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{BLOCK}\n{BLOCK}\n", id="two blocks"),
        pytest.param("<!-- firm-memory:begin -->\n- x\n", id="never ends"),
        pytest.param("- x\n<!-- firm-memory:end -->\n", id="never begins"),
        pytest.param("<!-- firm-memory:end -->\n<!-- firm-memory:begin -->\n", id="the wrong way round"),
        pytest.param("See <!-- firm-memory:begin --> here\n<!-- firm-memory:end -->\n", id="not alone"),
        pytest.param("<!-- Firm-Memory:Begin -->\n<!-- firm-memory:end -->\n", id="misspelt"),
    ],
)
def test_broken_markers_are_an_error_and_nothing_is_written(checkout, fm, text):
    path = write(checkout, "docs/AGENTS.md", text)
    with exporting(a_file(), a_file("docs/AGENTS.md")) as service:
        ended = export(fm, service)
    assert ended.code == 3
    assert "refused    docs/AGENTS.md" in ended.out
    assert path.read_text() == text
    assert not (checkout / "AGENTS.md").exists()


@pytest.mark.parametrize(
    "path",
    [
        "../AGENTS.md",
        "/etc/AGENTS.md",
        "a/../../AGENTS.md",
        ".git/hooks/pre-commit",
        "a/.GIT/x",
        "a\\..\\b",
        "C:x",
        "",
        "~/x",
        "a\nb",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(checkout, fm, path):
    before = sorted(checkout.parent.rglob("*"))
    with exporting(a_file(path)) as service:
        ended = export(fm, service)
    assert ended.code == 3
    assert sorted(checkout.parent.rglob("*")) == before


@pytest.mark.parametrize("of", ["file", "folder", "nothing"])
def test_a_link_out_of_the_checkout_is_not_followed(checkout, fm, tmp_path, of):
    outside = write(tmp_path, "outside/AGENTS.md", "- theirs\n")
    links = {
        "file": ("AGENTS.md", outside),
        "folder": ("docs", outside.parent),
        "nothing": ("AGENTS.md", tmp_path / "new"),
    }
    name, to = links[of]
    (checkout / name).symlink_to(to)
    with exporting(a_file("docs/AGENTS.md" if of == "folder" else "AGENTS.md")) as service:
        ended = export(fm, service)
    assert (ended.code, "outside of the checkout" in ended.out) == (3, True)
    assert outside.read_text() == "- theirs\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["AGENTS.md", "docs"])
def test_a_link_that_leads_in_a_circle_is_refused_and_no_traceback(checkout, fm, name):
    (checkout / name).symlink_to(name)
    with exporting(a_file("docs/AGENTS.md" if name == "docs" else "AGENTS.md")) as service:
        ended = export(fm, service)
    assert (ended.code, "in a circle" in ended.out) == (3, True)
    texts, (skipped,) = read_all(checkout, [f"{name}/AGENTS.md" if name == "docs" else name])
    assert (texts, "in a circle" in skipped.reason) == ([], True)


def test_what_somebody_writes_meanwhile_is_not_lost(checkout, monkeypatch):
    target = write(checkout, "AGENTS.md", "# Ours\n")
    planned = files._planned

    def and_meanwhile(root, file):
        plan = planned(root, file)
        target.write_text("# Ours, and newer\n")
        return plan

    monkeypatch.setattr(files, "_planned", and_meanwhile)
    (written,) = files.export_to(checkout, [ExportedFile("AGENTS.md", BLOCK, "")])
    assert (written.state, written.reason) == ("refused", "Somebody changed it meanwhile. Export again.")
    assert target.read_text() == "# Ours, and newer\n"


def test_a_link_within_the_checkout_stays_a_link(checkout, fm):
    write(checkout, "AGENTS.md", "# Ours\n")
    (checkout / "CLAUDE.md").symlink_to("AGENTS.md")
    with exporting(a_file("CLAUDE.md")) as service:
        assert export(fm, service, "--format", "claude_md").code == 0
    assert (checkout / "CLAUDE.md").is_symlink()
    assert (checkout / "AGENTS.md").read_text() == f"# Ours\n\n{BLOCK}\n"


@pytest.mark.parametrize("linked", ["CLAUDE.md", "AGENTS.md"])
def test_two_names_of_one_file_are_written_once(checkout, fm, linked):
    """Else each export would put the one's block in the place of the other's."""
    kept = {"CLAUDE.md": "AGENTS.md", "AGENTS.md": "CLAUDE.md"}[linked]
    write(checkout, kept, "# Ours\n")
    (checkout / linked).symlink_to(kept)
    with exporting(a_file(), a_file("CLAUDE.md", BLOCK.replace("- Amounts", "@AGENTS.md - Amounts"))) as service:
        for state, options in (("stale", ["--check"]), ("written", []), ("unchanged", []), ("unchanged", ["--check"])):
            ended = export(fm, service, "--format", "claude_md", *options)
            assert ended.code == (1 if state == "stale" else 0), ended.out
            assert ended.out.startswith(f"{state:<10} AGENTS.md\n")
            assert "skipped    CLAUDE.md  It is the same file as AGENTS.md" in ended.out
    assert (checkout / kept).read_text() == f"# Ours\n\n{BLOCK}\n"
    assert (checkout / linked).is_symlink()


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["unix", "windows"])
def test_what_is_included_by_hand_stays_the_only_include(checkout, fm, newline):
    ours = f"# Ours{newline}{newline}@AGENTS.md{newline}"
    path = write(checkout, "CLAUDE.md", ours)
    block = "<!-- firm-memory:begin repo=acme/pay -->\n@AGENTS.md\n<!-- firm-memory:end -->"
    with exporting(a_file(), a_file("CLAUDE.md", block)) as service:
        made, again = (export(fm, service, "--format", "claude_md") for _ in range(2))
        checked = export(fm, service, "--format", "claude_md", "--check")
        assert (made.code, again.code, checked.code) == (0, 0, 0)
        assert "unchanged  CLAUDE.md" in made.out
        assert path.read_bytes().decode() == ours
        with path.open("a", newline="") as file:
            file.write(block.replace("\n", newline) + newline)
        assert export(fm, service, "--format", "claude_md", "--check").code == 1
        assert export(fm, service, "--format", "claude_md").code == 0
    assert path.read_bytes().decode().count("@AGENTS.md") == 1
    assert path.read_bytes().decode().startswith(ours)


def test_what_is_no_block_is_not_written(checkout, fm):
    hostile = [a_file(block="rm -rf"), a_file(block=f"{BLOCK}\nmore"), a_file(whole="# Nothing of the kind\n")]
    for each in hostile:
        with exporting(each) as service:
            assert export(fm, service).code == 3
    assert not (checkout / "AGENTS.md").exists()


def test_an_export_that_cannot_be_asked_for_writes_nothing(checkout, fm):
    path = write(checkout, "AGENTS.md", f"{BLOCK}\n")
    with playing(export_files=lambda _: (503, {"code": "database_down", "detail": "The database is down."})) as service:
        ended = export(fm, service, "--timeout", "0.2")
    assert (ended.code, path.read_text()) == (5, f"{BLOCK}\n")


def test_a_write_that_fails_leaves_the_file_as_it_was(checkout, fm, monkeypatch):
    path = write(checkout, "AGENTS.md", "# Ours\n")

    def fail(*_: object) -> None:
        raise OSError("The disk is full.")

    monkeypatch.setattr(os, "fsync", fail)
    with exporting(a_file()) as service:
        ended = export(fm, service)
    assert (ended.code, "The disk is full." in ended.out) == (3, True)
    assert path.read_text() == "# Ours\n"
    assert sorted(each.name for each in checkout.iterdir()) == [".git", "AGENTS.md"]


@pytest.mark.parametrize("text", ["", "# Ours", "# Ours\n", "\ufeff", "# Ours\r\n", "a\rb\r"])
def test_merging_twice_changes_nothing(text):
    once = merged(text, BLOCK)
    assert merged(once, BLOCK) == once
    assert once.startswith(text)
    assert span_of(once) is not None


def test_text_that_only_speaks_of_markers_is_left_alone():
    text = "The line `firm-memory:begin` opens a block.\n"
    assert merged(text, BLOCK) == f"{text}\n{BLOCK}\n"
    with pytest.raises(BrokenMarkers, match="Line 1"):
        merged("`<!-- firm-memory:begin -->` opens a block.\n", BLOCK)


def test_a_checkout_is_looked_at_from_any_folder_of_it(checkout, fm, monkeypatch):
    (checkout / "deep" / "down").mkdir(parents=True)
    git(checkout, "remote", "add", "upstream", "https://git.example.com/other/pay.git")
    monkeypatch.chdir(checkout / "deep" / "down")
    with exporting(a_file()) as service:
        assert export(fm, service).code == 0
    assert (checkout / "AGENTS.md").exists()
    assert service.asked[0].query["repo"] == ["https://git.example.com/acme/pay"]
