from __future__ import annotations

import subprocess
import sys
from base64 import b64encode

import pytest

from apps.core.screening import Finding, find_secrets, mask

# Assembled here, so that no scanner of repositories takes them for real ones.
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "n0tAR3alT0kenButShapedLikeOne1234567"
ANTHROPIC = "sk-ant-" + "api03-5mUqYyZ0l8sQn7VbWcXe"
OURS = "fm_agent_" + "R4nd0mLyDr4wnValueForThisTest_0123456789ab"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
BEGIN, END = "-----BEGIN " + "RSA PRIVATE KEY-----", "-----END " + "RSA PRIVATE KEY-----"
BODY = "MIIEpAIBAAKCAQEA1c7p0vVtq9mN3sXoB8rYkQe5uH2jLwZfTgPdRyCnSxAaUbEi"


def kinds(text: str) -> list[str]:
    return [finding.kind for finding in find_secrets(text)]


def masked(text: str) -> str:
    return mask(text, find_secrets(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"the key is {AWS}.", "aws access key"),
        (f"GITHUB_TOKEN={GITHUB}", "github token"),
        (f"use {ANTHROPIC} for the tests", "anthropic key"),
        (f"Authorization: Bearer {OURS}", "firm memory token"),
        (f"cookie {JWT}", "jwt"),
        ("postgres://app:" + "s3cr3t@db/prod", "password in url"),
        ("weird+scheme://u:" + "pa55@host", "password in url"),
        ("Authorization: Basic " + b64encode(b"deploy:hunter2").decode(), "basic authorisation"),
        ("password = hunter2", "password"),
        ('"api_key": "4f9d0c2b7a6e1358"', "api key"),
        ("PGPASSWORD=hunter2 psql -h db", "password"),
        ("pwd: hunter2", "password"),
        ("Passwort: Geheim4711", "password"),
        ("mot de passe : Azerty12", "password"),
        ("contraseña: Abrete5esamo", "password"),
    ],
)
def test_kind(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


def test_only_the_value_is_masked() -> None:
    assert masked("db:\n  password: hunter2\n  port: 5432") == "db:\n  password: [secret: password]\n  port: 5432"
    assert masked("amqp://app:" + "hunter2@mq/prod") == "amqp://app:[secret: password in url]@mq/prod"
    assert masked(f"two: {AWS} and {GITHUB}") == "two: [secret: aws access key] and [secret: github token]"


@pytest.mark.parametrize(
    "text",
    [
        f"{BEGIN}\n{BODY}\n{BODY}\n{END}",
        f"{BEGIN}\\n{BODY}\\n{BODY}\\n{END}",
        f"{BEGIN} {BODY} {BODY} {END}",
        f"    {BEGIN}\n    {BODY}\n    {BODY}\n    {END}",
        f"> {BEGIN}\n> {BODY}\n> {END}",
        f'"{BEGIN}\\n" +\n"{BODY}\\n" +\n"{END}"',
        f"{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,A0B1\n\n{BODY}\n{END}",
        f"{BEGIN}\n{BODY}\n{BODY}",  # cut off before its end
        f"{BEGIN}\n{BODY}",
    ],
)
def test_private_keys_in_every_shape(text: str) -> None:
    assert kinds(text) == ["private key"]
    assert BODY not in masked(text)


def test_a_header_that_is_spoken_of_is_no_key() -> None:
    assert not find_secrets(f"Files that begin with `{BEGIN}` are refused by the hook.")
    assert not find_secrets("-----BEGIN " + "PUBLIC KEY-----\n" + BODY + "\n-----END PUBLIC KEY-----")


@pytest.mark.parametrize(
    "text",
    [
        f"{GITHUB[:10]}\u200b{GITHUB[10:]}",
        f"{GITHUB[:10]}\u00ad{GITHUB[10:20]}\u2060{GITHUB[20:]}",
        "".join(chr(ord(character) + 0xFEE0) for character in GITHUB),
        f"{GITHUB[:30]}\n    {GITHUB[30:]}",
        f"> {GITHUB[:30]}\n> {GITHUB[30:]}",
        f"{GITHUB[:30]}\\\n{GITHUB[30:]}",
        f"\x1b[33m{GITHUB}\x1b[0m",
        "".join(chr(0xE0000 + ord(character)) for character in GITHUB),
        f"pass\u200bword = {GITHUB}",
    ],
)
def test_what_is_split_or_disguised_is_found_and_masked_where_it_stands(text: str) -> None:
    around = f"before {text} after"
    (finding,) = find_secrets(around)
    assert finding.kind == "github token"
    remains = mask(around, [finding])
    assert remains.startswith("before ")
    assert remains.endswith(" after")
    assert GITHUB[:10] not in remains
    assert GITHUB[-6:] not in remains


def test_a_long_token_over_several_lines() -> None:
    text = f"the cookie:\n{JWT[:30]}\n{JWT[30:60]}\n{JWT[60:]}\nwas still valid"
    assert masked(text) == "the cookie:\n[secret: jwt]\nwas still valid"


@pytest.mark.parametrize("joint", ['" + "', "' . '", '" \\\n    "', '"\n  "', '" +\n  "', "-\n", "<wbr>", "<br/>"])
@pytest.mark.parametrize("at", [14, 20, 24])
def test_a_secret_in_pieces_is_masked_to_its_end(joint: str, at: int) -> None:
    text = f"token = {GITHUB[:at]}{joint}{GITHUB[at:]} is used"
    assert masked(text) == "token = [secret: github token] is used"


def test_a_password_in_pieces_is_masked_to_its_end() -> None:
    assert masked('password = "Wx7eKq92" + "LmZp41Rt" + suffix') == 'password = "[secret: password]" + suffix'
    assert masked('password = "Wx7eKq92" + "-suffix"') == 'password = "[secret: password]" + "-suffix"'


def test_every_cell_of_a_column_and_no_other() -> None:
    table = "| user | password | note |\n|---|---|---|\n| a1B2c3D4e5 | Ig8xQv2LmZp4 | x |\n| b | in Vault | y |\n"
    assert masked(table) == table.replace("Ig8xQv2LmZp4", "[secret: password]")
    assert masked(f"{table}\nSee Wx7eKq92LmZp | there.").endswith("\nSee Wx7eKq92LmZp | there.")


@pytest.mark.parametrize("fillers", [1, 2, 3])
def test_an_answer_after_other_turns(fillers: int) -> None:
    turns = "".join(f"ben: {said}\n" for said in ("hang on", "one sec...", "same question")[:fillers])
    asked = f"ana: what's the staging password?\n{turns}"
    assert masked(f"{asked}cem: Wx7eKq92LmZp") == f"{asked}cem: [secret: password]"
    assert masked(f"{asked}cem: admin / Wx7eKq92LmZp") == f"{asked}cem: admin / [secret: password]"
    long = "ben: it was told in the meeting of the platform team on Monday\n"
    assert not find_secrets(f"{asked}{long}cem: Wx7eKq92LmZp")


def test_a_word_on_the_next_line_is_not_masked() -> None:
    assert masked(f"{GITHUB}\nThe next sentence.") == "[secret: github token]\nThe next sentence."


def test_fully_quoted_assignments_keep_their_quotes() -> None:
    assert masked(r'{"password": "a\"b1c2"}') == '{"password": "[secret: password]"}'
    assert masked(r"{\"password\": \"hunter2\"}") == r"{\"password\": \"[secret: password]\"}"


def test_markup_entities() -> None:
    assert masked("password=&quot;hunter2&quot;") == "password=&quot;[secret: password]&quot;"


def test_representation_shows_no_value() -> None:
    (finding,) = find_secrets(f"x {AWS}")
    assert repr(finding) == "Finding(kind='aws access key', start=2, end=22)"


def test_mask_takes_findings_in_any_order_and_joins_overlaps() -> None:
    text = "0123456789"
    findings = [Finding("b", 6, 8), Finding("a", 0, 3), Finding("c", 2, 4)]
    assert mask(text, findings) == "[secret: a]45[secret: b]89"
    assert mask(text, []) == text


def test_masking_again_changes_nothing() -> None:
    once = masked(f"password = hunter2, key {AWS}{GITHUB} and https://a:" + "b2@c/")
    assert not find_secrets(once)


def test_a_mark_does_not_hide_what_follows_it() -> None:
    assert masked("[secret: jwt] password = hunter2") == "[secret: jwt] password = [secret: password]"


@pytest.mark.parametrize(
    "text",
    [
        "password = <your password>",
        "password = $PASSWORD",
        "password: ${{ secrets.DB_PASSWORD }}",
        'api_key = os.environ["API_KEY"]',
        "password: str",
        "def login(user: str, password: str | None = None) -> Session: …",
        "The password field is required.",
        "api_key=None",
        "password = xxxx",
        "password: ****",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 550e8400-e29b-41d4-a716-446655440000",
        "Upgrade to 2.14.0-rc.1+build.20240911.",
        "SGVsbG8sIFdvcmxkIQ== decodes to a greeting",
        "sk-loading-spinner-container is a class",
        "https://acme.example:8443/a?b=c@d",
        "git@github.com:acme/oms.git",
        "npm install @acme/ui@2.3.1",
        "The token is RS256-signed and lives 15 minutes.",
        "",
    ],
)
def test_harmless(text: str) -> None:
    assert not find_secrets(text)


def test_import_is_light() -> None:
    """Neither Django nor any library is loaded for it; the propose path pays for nothing else."""
    code = (
        "import sys; before = set(sys.modules); import apps.core.screening;"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(loaded - set(sys.stdlib_module_names)))"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "['apps']"
