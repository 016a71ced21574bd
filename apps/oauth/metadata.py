"""What a client reads to find its way: RFC 9728 for what is protected, RFC 8414 for who gives tokens."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.oauth.addresses import SCOPES, absolute, base, resource


def protected_resource(path: str) -> dict[str, Any]:
    return {
        "resource": resource(path),
        "resource_name": "Firm Memory",
        "authorization_servers": [base()],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
    }


def authorization_server() -> dict[str, Any]:
    """The same for RFC 8414 and for clients that look where OpenID Connect has it. There are no ID tokens."""
    described: dict[str, Any] = {
        "issuer": base(),
        "authorization_endpoint": absolute("oauth:authorize"),
        "token_endpoint": absolute("oauth:token"),
        "revocation_endpoint": absolute("oauth:revoke"),
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": False,
    }
    if settings.FIRM_MEMORY_OAUTH_REGISTRATION != "off":
        described["registration_endpoint"] = absolute("oauth:register")
    return described
