from __future__ import annotations

import gzip

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Membership, Role
from apps.accounts.principal import operator
from apps.accounts.services import member_add

pytestmark = pytest.mark.urls("tests.probe_urls")
PAGE = "/probe/reviewers/"


def test_who_is_let_in(browser, alice, bob, carol, dave) -> None:
    for who in (alice, carol, dave):
        assert browser(who).get(PAGE).status_code == 200
    refused = browser(bob).get(PAGE)
    assert refused.status_code == 403
    assert "Only a person with the reviewer role may see the queue." in refused.content.decode()


def test_a_page_knows_its_principal(browser, alice) -> None:
    answer = browser(alice).get(PAGE, headers={"X-Request-ID": "r1"})
    assert answer.content.decode() == "alice in firm via ui r1"


def test_the_list_of_workspaces_asks_nothing_more(browser, alice, other_workspace) -> None:
    """What the principal was chosen from is what the frame offers to choose from."""
    member_add(principal=operator(other_workspace), username="alice", role=Role.MEMBER)
    client = browser(alice)
    client.get("/review/")
    with CaptureQueriesContext(connection) as captured:
        answer = client.get("/review/")
    asked = [query["sql"] for query in captured if "accounts_membership" in query["sql"] and "FROM" in query["sql"]]
    assert [str(workspace) for workspace in answer.context["workspaces"]] == ["firm", "other"]
    assert len(asked) == 1, asked


def test_pages_are_kept_by_no_cache(browser, alice) -> None:
    assert "no-store" in browser(alice).get(PAGE).headers["Cache-Control"]


def test_nobody_is_sent_to_sign_in_and_back(browser, db) -> None:
    answer = browser().get(f"{PAGE}?a=1")
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"/accounts/login/?next={PAGE}%3Fa%3D1"


@pytest.mark.parametrize("path", [PAGE, "/admin/taxonomy/memorytype/"])
@pytest.mark.parametrize("in_place", [False, True])
def test_what_must_not_be_repeated_is_not_come_back_to(browser, db, path, in_place) -> None:
    asked = f"{path}?q=AKIAIOSFODNN7EXAMPLA&type=bug_fixes"
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{asked}"} if in_place else {}
    answer = browser().get(asked, headers=headers, follow=path.startswith("/admin"))
    shown = str(answer.headers) + str(getattr(answer, "redirect_chain", "")) + answer.content.decode()
    assert "bug_fixes" in shown
    if path.startswith("/admin"):  # its first hop is Django's own, to an address of this site; no page shows it
        shown = str(answer.redirect_chain[-1]) + answer.content.decode()
    assert "AKIAIOSFODNN7EXAMPLA" not in shown


def test_a_post_of_nobody_is_not_repeated_as_a_get(browser, db) -> None:
    assert browser().post(PAGE).headers["Location"] == "/accounts/login/?next=/"


@pytest.mark.parametrize(
    ("referer", "back"),
    [
        ("http://testserver/review/1/?type=bug_fixes", "/review/1/%3Ftype%3Dbug_fixes"),
        ("http://testserver/review/1/?q=AKIAIOSFODNN7EXAMPLA", "/review/1/%3Fq%3D%255Bsecret"),
        ("https://elsewhere.example/review/1/", "/"),
        ("http://testserver.elsewhere.example/", "/"),
        ("http://testserver//elsewhere.example/", "/"),
    ],
)
def test_who_sends_a_form_comes_back_to_its_page(browser, db, referer, back) -> None:
    answer = browser().post(PAGE, headers={"Referer": referer})
    assert answer.headers["Location"].startswith(f"/accounts/login/?next={back}")
    assert back != "/" or answer.headers["Location"].endswith("=/")


@pytest.mark.parametrize("path", [PAGE, "/static/css/firm-memory.css"])
def test_what_is_sent_is_compressed_for_who_takes_it(browser, alice, path) -> None:
    client = browser(alice)
    plain, packed = client.get(path), client.get(path, headers={"Accept-Encoding": "gzip"})
    if path == PAGE:  # too short to be worth it
        assert "Content-Encoding" not in packed.headers
        return
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(b"".join(packed)) == b"".join(plain)


def test_a_page_of_one_person_does_nothing_in_the_name_of_another(browser, alice, carol) -> None:
    client = browser(carol)
    assert client.get(PAGE, headers={"Firm-Memory-Person": str(carol.pk)}).status_code == 200
    refused = client.get(PAGE, headers={"Firm-Memory-Person": str(alice.pk)})
    assert refused.status_code == 409
    assert "carol has signed in since" in refused.content.decode()


def test_htmx_reloads_instead_of_swapping_in_the_sign_in_page(browser, db) -> None:
    answer = browser().get(PAGE, headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/review/?a=1"})
    assert answer.status_code == 204
    assert answer.headers["HX-Redirect"] == "/accounts/login/?next=/review/%3Fa%3D1"


# --- what was sent after a session had ended ------------------------------------------------------------------
SENT = "/review/00000000-0000-0000-0000-000000000000/approve/"
LOST = "Your approval was not recorded, since you had been signed out."


def shown_after_signing_in(client, who, path: str = "/") -> str:
    client.force_login(who)
    return client.get(path).content.decode()


def test_what_came_to_nothing_is_said_once_to_whoever_signs_in_again(browser, alice) -> None:
    client = browser()
    assert client.post(SENT, {"version": 1}).status_code == 302
    assert LOST not in client.get("/accounts/login/").content.decode()
    assert LOST in shown_after_signing_in(client, alice)
    assert LOST not in client.get("/").content.decode()


def test_in_place_it_is_said_to_the_person_who_sent_it(browser, alice, carol) -> None:
    headers = {"HX-Request": "true", "Firm-Memory-Person": str(alice.pk)}
    for who, told in ((alice, True), (carol, False)):
        client = browser()
        assert client.post(SENT, {"version": 1}, headers=headers).status_code == 204
        assert (LOST in shown_after_signing_in(client, who)) is told
        assert LOST not in shown_after_signing_in(client, alice)


def test_nothing_is_said_of_what_was_only_looked_at(browser, alice) -> None:
    client = browser()
    client.get("/review/")
    assert "not recorded" not in shown_after_signing_in(client, alice)


def test_a_token_is_not_a_browser(api, alice_token) -> None:
    assert api(alice_token).get(PAGE).status_code == 302


def test_choosing_a_workspace(browser, workspace, other_workspace, alice) -> None:
    member_add(principal=operator(other_workspace), username="alice", role=Role.REVIEWER)
    client = browser(alice)
    assert "in firm" in client.get(PAGE).content.decode()
    answer = client.post("/workspace/", {"workspace": "other", "next": "/review/"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/review/")
    assert "in other" in client.get(PAGE).content.decode()
    assert client.get("/api/v1/me/").json()["workspace"] == "other"
    Membership.objects.filter(user=alice, workspace=other_workspace).delete()
    assert "in firm" in client.get(PAGE).content.decode()


@pytest.mark.parametrize("slug", ["other", "nothing", "", "FIRM"])
def test_a_workspace_one_is_not_in_is_not_there(browser, other_workspace, alice, slug: str) -> None:
    client = browser(alice)
    assert client.post("/workspace/", {"workspace": slug}).status_code == 404
    assert "in firm" in client.get(PAGE).content.decode()


def test_choosing_nul_is_no_server_error(browser, alice) -> None:
    assert browser(alice).post("/workspace/", {"workspace": "a\x00"}).status_code in (404, 422)


def test_choosing_is_a_post_of_somebody(browser, alice) -> None:
    assert browser(alice).get("/workspace/").status_code == 405
    assert browser().post("/workspace/", {"workspace": "firm"}).status_code == 302


@pytest.mark.parametrize("target", ["//evil.example/", "https://evil.example/", "javascript:alert(1)", ""])
def test_choosing_does_not_lead_elsewhere(browser, alice, target: str) -> None:
    answer = browser(alice).post("/workspace/", {"workspace": "firm", "next": target})
    assert answer.headers["Location"] == "/"


def test_roles_in_one_workspace_are_not_roles_in_another(browser, other_workspace, charlie, workspace) -> None:
    member_add(principal=operator(workspace), username="charlie", role=Role.MEMBER)
    client = browser(charlie)
    assert client.get(PAGE).status_code == 200
    client.post("/workspace/", {"workspace": "firm"})
    assert client.get(PAGE).status_code == 403
