from __future__ import annotations

import pytest
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.contrib.auth.models import AnonymousUser, User
from django.core.cache import cache
from django.test import RequestFactory
from django.urls import Resolver404, resolve

from apps.accounts.adapter import InvitedOnlySocialAdapter, invited_person
from apps.accounts.models import Role
from apps.accounts.principal import operator
from apps.accounts.services import member_add
from apps.core import problems

LOGIN = "/accounts/login/"


@pytest.fixture(autouse=True)
def no_earlier_attempts(db) -> None:
    cache.clear()


@pytest.fixture
def erin(workspace) -> tuple[User, str]:
    password = member_add(principal=operator(workspace), username="erin", role=Role.REVIEWER, email="erin@acme.example")
    assert password is not None
    return User.objects.get(username="erin"), password


@pytest.mark.parametrize("login", ["erin", "erin@acme.example"])
def test_signing_in_and_out(browser, erin, login: str) -> None:
    client = browser()
    answer = client.post(LOGIN, {"login": login, "password": erin[1]})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert {"sessionid", "csrftoken"} <= set(client.cookies)
    assert client.cookies["sessionid"]["httponly"]
    assert client.get("/api/v1/me/").json()["name"] == "erin"
    client.get("/accounts/logout/")
    assert client.get("/api/v1/me/").status_code == 200, "a link must not sign anybody out"
    client.post("/accounts/logout/")
    assert client.get("/api/v1/me/").status_code == 401


def test_the_entrance_says_why_one_is_there(browser) -> None:
    client = browser()
    shown = client.get(LOGIN).content.decode()
    assert "Username" not in shown and "placeholder" not in shown
    assert "you come back to the page you asked for" not in shown
    assert "you come back to the page you asked for" in client.get(LOGIN, {"next": "/review/"}).content.decode()
    client.post("/review/bulk/", {})
    shown = client.get(LOGIN, {"next": "/review/"}).content.decode()
    assert "Your decision about several candidates was not recorded; sign in and you come back to it." in shown


def test_a_wrong_password(browser, erin) -> None:
    client = browser()
    answer = client.post(LOGIN, {"login": "erin", "password": "wrong"})
    assert answer.status_code == 200
    assert client.get("/api/v1/me/").status_code == 401


def test_guessing_passwords_ends(browser, erin) -> None:
    client = browser()
    for _ in range(6):
        client.post(LOGIN, {"login": "erin", "password": "wrong"})
    client.post(LOGIN, {"login": "erin", "password": erin[1]})
    assert client.get("/api/v1/me/").status_code == 401


def test_changing_the_password(browser, erin) -> None:
    user, password = erin
    client = browser(user)
    fresh = "correct horse battery staple"
    data = {"oldpassword": password, "password1": fresh, "password2": fresh}
    assert client.post("/accounts/password/change/", data).status_code == 302
    user.refresh_from_db()
    assert user.check_password(fresh)
    weak = {"oldpassword": fresh, "password1": "short", "password2": "short"}
    assert client.post("/accounts/password/change/", weak).status_code == 200
    user.refresh_from_db()
    assert user.check_password(fresh)


@pytest.mark.parametrize("path", ["/accounts/signup/", "/accounts/3rdparty/signup/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_nobody_signs_up(browser, db, path: str, method: str) -> None:
    data = {"username": "mallory", "password1": "a long password 1", "password2": "a long password 1"}
    answer = getattr(browser(), method)(path, data)
    assert answer.status_code == 403
    assert answer.context["problem"]["code"] == "invited_only"
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "path",
    ["/accounts/", "/accounts/email/", "/accounts/password/reset/", "/accounts/confirm-email/", "/accounts/3rdparty/"],
)
def test_what_is_not_needed_is_not_there(browser, db, path: str) -> None:
    assert browser().get(path).status_code == 404


def test_google_is_not_there_unless_configured() -> None:
    with pytest.raises(Resolver404):
        resolve("/accounts/google/login/")


# --- by Google ----------------------------------------------------------------------------------------------
@pytest.fixture
def google_configured(settings) -> None:
    resolve("/healthz")  # the addresses are made once, before this
    app = {"client_id": "id", "secret": "secret", "key": ""}
    settings.SOCIALACCOUNT_PROVIDERS = {"google": {"APPS": [app]}}


def google(email: str, *, verified: bool = True) -> SocialLogin:
    request = RequestFactory().get("/")
    return SocialLogin(
        user=User(email=email),
        account=SocialAccount(provider="google", uid="g1"),
        email_addresses=[EmailAddress(email=email, verified=verified, primary=True)],
        provider=InvitedOnlySocialAdapter(request).get_provider(request, "google"),
    )


def arrive(login: SocialLogin) -> None:
    request = RequestFactory().get("/accounts/google/login/callback/")
    request.user = AnonymousUser()
    login.lookup()
    InvitedOnlySocialAdapter(request).pre_social_login(request, login)


@pytest.mark.usefixtures("google_configured")
def test_a_member_with_the_verified_address_comes_in_and_stays_connected(erin) -> None:
    arrive(google("Erin@ACME.example"))
    assert SocialAccount.objects.get().user == erin[0]
    again = google("changed@acme.example")
    arrive(again)
    assert again.user == erin[0]


@pytest.mark.usefixtures("google_configured")
@pytest.mark.parametrize(
    ("email", "verified"), [("erin@acme.example", False), ("mallory@acme.example", True), ("", True)]
)
def test_anybody_else_does_not(erin, email: str, verified: bool) -> None:
    with pytest.raises(ImmediateHttpResponse) as refused:
        arrive(google(email, verified=verified))
    assert refused.value.response.status_code == 403
    assert "No member has the verified address" in refused.value.response.content.decode()
    assert not SocialAccount.objects.exists()
    assert User.objects.count() == 1


def test_a_person_without_a_membership_or_without_an_address_is_not_invited(erin, workspace) -> None:
    User.objects.create_user("ghost", email="ghost@acme.example")
    member_add(principal=operator(workspace), username="silent", role=Role.MEMBER)
    assert invited_person(["ghost@acme.example"]) is None
    assert invited_person([""]) is None


def test_an_address_of_two_people_is_nobodys(erin, workspace) -> None:
    member_add(principal=operator(workspace), username="twin", role=Role.ADMIN, email="ERIN@acme.example")
    assert invited_person(["erin@acme.example"]) is None


def test_a_deactivated_person_is_not_invited(erin) -> None:
    erin[0].is_active = False
    erin[0].save()
    assert invited_person(["erin@acme.example"]) is None


def test_the_api_prefixes_do_not_catch_pages() -> None:
    for path, expected in {"/api/v1/me/": True, "/mcp": True, "/accounts/login/": False, "/review/": False}.items():
        assert problems.for_clients(RequestFactory().get(path)) is expected


@pytest.mark.parametrize("login", ["erin", "erin@acme.example", "nobody", "nobody@acme.example"])
def test_a_wrong_password_is_answered_in_our_words_and_tells_nobody_who_is_here(browser, erin, login: str) -> None:
    page = browser().post(LOGIN, {"login": login, "password": "wrong"}).content.decode()
    assert "This name or address and this password do not go together." in page
    assert "and/or" not in page
