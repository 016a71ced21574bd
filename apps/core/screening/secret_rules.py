"""The shapes of keys and tokens that can be told from their own characters.

A rule runs only where one of its words stands in the text, so that a hundred rules cost a hundred substring
searches. Every pattern begins behind a boundary and every quantifier is bounded: the work stays linear.
Lengths are more lenient than the issuers' own, since a shortened real key is still one to revoke.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final


@dataclass(frozen=True, slots=True)
class TokenRule:
    """``source`` has the secret in group 1, or is the secret as a whole. The words are case-sensitive.

    Most rules never run in a process, so a pattern is compiled when one of its words is first met.
    """

    kind: str
    words: tuple[str, ...]
    source: str

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.source)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)


_BOUNDARY: Final = r"(?<![A-Za-z0-9+])"


def _token(kind: str, words: str, source: str) -> TokenRule:
    return TokenRule(kind, tuple(words.split()), _BOUNDARY + source)


def _within(kind: str, words: str, source: str) -> TokenRule:
    """For a secret that is told by what stands around it."""
    return TokenRule(kind, tuple(words.split()), source)


TOKEN_RULES: Final[tuple[TokenRule, ...]] = (
    # Our own, first of all.
    _token("firm memory token", "fm_", r"fm_(?:agent|bot|reviewer)_(?=[a-z_-]{0,40}[A-Z0-9])[\w-]{12,200}"),
    # Clouds
    _token(
        "aws access key",
        "AKIA ASIA ABIA ACCA A3T",
        r"(?:(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,16}|A3T[A-Z0-9]{17})(?![A-Za-z0-9])",
    ),
    _within("aws signature", "X-Amz-Signature=", r"X-Amz-Signature=([0-9a-f]{40,64})"),
    _token("akamai token", "akab-", r"akab-[a-z0-9]{16}-[a-z0-9]{16}"),
    _token("aws session token", "FwoGZXIvYXdz IQoJb3JpZ2lu", r"(?:FwoGZXIvYXdz|IQoJb3JpZ2lu)[A-Za-z0-9/+=]{40,2000}"),
    _token(
        "aws bedrock key",
        "ABSK bedrock-api-key-",
        r"(?:ABSK[A-Za-z0-9+/]{60,250}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{20,2000})",
    ),
    _token("aws marketplace key", "amzn.mws.", r"amzn\.mws\.[0-9a-z-]{30,40}"),
    _token("google api key", "AIza", r"AIza[\w-]{30,40}"),
    _token("google oauth secret", "GOCSPX-", r"GOCSPX-[\w-]{20,40}"),
    _token("google oauth token", "ya29.", r"ya29\.[\w-]{20,2000}"),
    _token("google refresh token", "1//0", r"1//0[\w-]{30,200}"),
    _token("google api key", "AQ.Ab", r"AQ\.Ab[\w-]{30,200}"),
    _token("azure client secret", "8Q~ 7Q~", r"[\w~.-]{3}[78]Q~[\w~.-]{30,36}"),
    _token(
        "azure storage key",
        "AccountKey SharedAccessKey",
        r"(?:AccountKey|SharedAccessKey)\s?=\s?([A-Za-z0-9+/]{40,100}={0,2})",
    ),
    _token(
        "azure service key",
        "+ASt +ABa +AMC APIM ACDb",
        r"[A-Za-z0-9/+]{70,80}(?:APIM|ACDb|\+(?:ABa|AMC|ASt))[A-Za-z0-9+/]{5,6}(?:==)?",
    ),
    _token("azure devops token", "AZDO", r"[A-Za-z0-9]{70,80}AZDO[A-Za-z0-9]{4}"),
    _within("azure shared access signature", "sig=", r"[?&;]sig=([\w%+/=-]{40,100})"),
    _token("digitalocean token", "_v1_", r"do[oprt]_v1_[0-9a-f]{32,64}"),
    _token("alibaba access key", "LTAI", r"LTAI[A-Za-z0-9]{12,30}(?![A-Za-z0-9])"),
    _token("tencent secret id", "AKID", r"AKID[A-Za-z0-9]{28,40}(?![A-Za-z0-9])"),
    _token(
        "yandex cloud key",
        "AQVN YCAJ t1.",
        r"(?:AQVN[\w-]{35,45}|YCAJ[\w-]{20,30}|t1\.[A-Z0-9][\w-]{1,200}\.[\w-]{80,100})",
    ),
    _token(
        "cloudflare token",
        "v1.0- cfut_ cfat_ cfk_",
        r"(?:v1\.0-[0-9a-f]{24}-[0-9a-f]{100,160}|cf(?:ut|at|k)_[\w-]{30,80})",
    ),
    _token("heroku key", "HRKU-", r"HRKU-[\w-]{30,80}"),
    _token("fly.io token", "fo1_ fm1 fm2_", r"(?:fo1_[\w-]{40,60}|fm1[ar]_[\w+/=-]{60,1000}|fm2_[\w+/=-]{60,1000})"),
    _token("netlify token", "nfp_ nfc_ nfo_ nfu_", r"nf[pcou]_[A-Za-z0-9]{30,60}"),
    _token("vercel token", "vcp_ vci_ vca_ vcr_ vck_", r"vc[piark]_[A-Za-z0-9]{24,80}"),
    _token("supabase key", "sbp_ sb_secret_", r"(?:sbp_(?:oauth_|v0_)?[0-9a-f]{40}|sb_secret_[\w-]{20,60})"),
    _token("planetscale token", "pscale_", r"pscale_(?:tkn|pw|oauth|app_secret)_[\w.=-]{24,80}"),
    _token("neon key", "napi_", r"napi_[A-Za-z0-9]{40,80}"),
    _token("render key", "rnd_", r"rnd_[A-Za-z0-9]{28,40}"),
    _token("scaleway key", "SCW", r"SCW[A-Z0-9]{17}(?![A-Za-z0-9])"),
    _token("databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _token("terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{50,80}"),
    _token("vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{20,300}"),
    _token("vault token", "s.", r"(?<![\w.])s\.(?=[A-Za-z]{0,23}\d)(?=[a-z0-9]{0,23}[A-Z])[A-Za-z0-9]{24}(?![\w.-])"),
    _token("pulumi token", "pul-", r"pul-[0-9a-f]{40}"),
    _token("doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    _token("tailscale key", "tskey-", r"tskey-(?:auth|api|client|scim|webhook)-[\w-]{16,80}"),
    _token(
        "1password token",
        "ops_eyJ A3-",
        r"(?:ops_eyJ[\w=-]{100,2000}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){3,5}[A-Z0-9]{5,6})",
    ),
    # Forges and package registries
    _token(
        "github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_(?:[A-Za-z0-9]{20,255}|\d{6,12}_eyJ[\w.-]{20,2000})"
    ),
    _token("github token", "github_pat_", r"github_pat_\w{20,255}"),
    _token(
        "gitlab token",
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- gloas- glwt-",
        r"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct|oas|wt)-[\w.-]{15,300}",
    ),
    _within("gitlab session", "_gitlab_session=", r"_gitlab_session=([0-9a-z]{32})"),
    _token("gitlab token", "GR1348941", r"GR1348941[\w-]{16,40}"),
    _token("bitbucket token", "ATBB ATCTT3x BBDC-", r"(?:ATBB[\w=]{20,60}|ATCTT3x[\w=.-]{20,300}|BBDC-[\w+/-]{40,50})"),
    _token("atlassian token", "ATATT3x ATSTT3x ATOA", r"(?:ATATT3x|ATSTT3x|ATOAT3x)[\w=.-]{20,300}"),
    _token("npm token", "npm_", r"npm_[A-Za-z0-9]{30,50}"),
    _within(
        "npm token", "_authToken _auth _password", r"_(?:authToken|auth|password)\s?=\s?[\"']?(?!\$)([\w+/=.-]{12,300})"
    ),
    _token("pypi token", "pypi-Ag", r"pypi-Ag[\w-]{30,300}"),
    _token("rubygems key", "rubygems_", r"rubygems_[0-9a-f]{40,60}"),
    _token("crates.io token", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    _token("nuget key", "oy2", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    _token(
        "docker token", "dckr_ SWMTKN- SWMKEY-", r"(?:dckr_(?:pat|oat)_[\w-]{20,60}|SWM(?:TKN|KEY)-1-[\w+/-]{30,120})"
    ),
    _token("clojars token", "CLOJARS_", r"CLOJARS_[a-z0-9]{40,70}"),
    _token("artifactory token", "AKCp cmVmdGtuO", r"(?:AKCp[A-Za-z0-9]{50,100}|cmVmdGtuO[A-Za-z0-9]{40,100})"),
    _token("sonar token", "sqp_ squ_ sqa_", r"sq[apu]_[0-9a-f]{40}"),
    _token("circleci token", "CCIPAT_ CCIPRJ_", r"CCIP(?:AT|RJ)_[\w-]{30,120}"),
    _token("buildkite token", "bkua_ bkat_ bkaj_", r"bk(?:ua|at|aj)_[0-9a-zA-Z_-]{30,120}"),
    _token("sourcegraph token", "sgp_", r"sgp_(?:[a-zA-Z0-9]{16}_|local_)?[0-9a-fA-F]{40}"),
    # Chat and webhooks
    _token(
        "slack token",
        "xoxa xoxb xoxc xoxd xoxe xoxp xoxr xoxs xapp- xwfp-",
        r"(?:xox[abcdeprs](?:\.xox[abp])?-(?=[A-Za-z%-]{0,30}\d)[\w%-]{10,400}|xapp-\d-[A-Za-z0-9-]{10,200}"
        r"|xwfp-[\w-]{10,200})",
    ),
    _within(
        "slack webhook", "hooks.slack.com", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[\w/-]{20,200}"
    ),
    _within(
        "discord webhook", "/webhooks/", r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{10,24}/[\w-]{20,120}"
    ),
    _token("discord token", ".", r"(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,45}(?![\w-])"),
    _token("telegram token", ":AA", r"\d{6,12}:AA[\w-]{30,40}"),
    _within("teams webhook", "office.com/webhook", r"[\w.-]{1,80}\.office\.com/webhook(?:b2)?/[\w@./-]{30,400}"),
    _within(
        "power automate webhook",
        "logic.azure.com powerplatform.com",
        r"(?:logic\.azure|powerplatform)\.com[^\s\"'<>]{10,300}sig=([\w%-]{20,100})",
    ),
    _within(
        "google chat webhook",
        "chat.googleapis.com",
        r"chat\.googleapis\.com/v1/spaces/[^\s\"'<>]{1,80}/messages\?[^\s\"'<>]{20,300}",
    ),
    _within("mattermost webhook", "/hooks/", r"/hooks/([a-z0-9]{26})(?![A-Za-z0-9])"),
    _within("zapier webhook", "hooks.zapier.com", r"hooks\.zapier\.com/hooks/catch/\d{3,12}/\w{4,20}"),
    # Models
    _token("anthropic key", "sk-ant-", r"sk-ant-[\w-]{16,250}"),
    _token("openrouter key", "sk-or-", r"sk-or-[\w-]{16,250}"),
    _token("langfuse key", "sk-lf-", r"sk-lf-[\w-]{16,80}"),
    _token(
        "openai key",
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin|None)-[\w-]{16,300}|[A-Za-z0-9]{20,300}|(?=[A-Za-z_-]{0,60}\d)[\w-]{24,300})",
    ),
    _token(
        "hugging face token",
        "hf_ api_org_",
        r"(?:hf|api_org)_(?=[a-z0-9]{0,40}[A-Z])[A-Za-z0-9]{30,40}(?![A-Za-z0-9_])",
    ),
    _token("replicate token", "r8_", r"r8_[A-Za-z0-9]{30,50}"),
    _token("groq key", "gsk_", r"gsk_[A-Za-z0-9]{30,80}"),
    _token("perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{30,80}"),
    _token("xai key", "xai-", r"xai-[A-Za-z0-9]{30,120}"),
    _token("nvidia key", "nvapi-", r"nvapi-[\w-]{40,120}"),
    _token("langsmith key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{24,40}_[0-9a-f]{8,12}"),
    _token("cerebras key", "csk-", r"csk-[a-z0-9]{40,60}"),
    _token("fireworks key", "fw_", r"fw_(?=[A-Za-z]{0,20}\d)[A-Za-z0-9]{20,40}(?!\w)"),
    _token("pinecone key", "pcsk_", r"pcsk_\w{30,100}"),
    _token("llamacloud key", "llx-", r"llx-[\w-]{40,60}"),
    _token("together key", "tgp_v1_", r"tgp_v1_[\w-]{40,50}"),
    _token("tavily key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,60}"),
    _token("firecrawl key", "fc-", r"fc-[0-9a-f]{32}(?![0-9a-f])"),
    _token("jina key", "jina_", r"jina_[\w-]{40,80}"),
    _token("voyage key", "pa-", r"pa-(?=[A-Za-z_-]{0,40}\d)[\w-]{40,60}(?!\w)"),
    _token("mem0 key", "m0-", r"m0-[A-Za-z0-9]{35,50}(?!\w)"),
    # Payment, mail, product services
    _token(
        "stripe key", "_live_ _test_ _prod_ whsec_", r"(?:(?:sk|rk)_(?:live|test|prod)_\w{10,250}|whsec_[\w+/=]{20,80})"
    ),
    _token("elevenlabs key", "sk_", r"sk_[0-9a-f]{40,60}"),
    _token("twilio key", "SK", r"SK(?:[0-9a-f]{32}|[0-9A-F]{32})(?![0-9A-Za-z])"),
    _token("sendgrid key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    _token("mailgun key", "key-", r"key-[0-9a-f]{32}(?![0-9a-f])"),
    _within("mailgun key", "mailgun MAILGUN Mailgun", r"(?<![0-9a-f])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9a-f])"),
    _token("easypost key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{50,60}"),
    _token("mailchimp key", "-us", r"[0-9A-Za-z]{32}-us\d{1,2}(?!\w)"),
    _token("brevo key", "xkeysib- xsmtpsib-", r"x(?:keysib|smtpsib)-[0-9a-f]{40,64}-\w{10,20}"),
    _token("resend key", "re_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,30}"),
    _token("shopify token", "shpat_ shpca_ shppa_ shpss_ shpua_", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{24,40}"),
    _token("square token", "sq0 EAAA", r"(?:sq0(?:atp|csp|idp)-[\w-]{20,60}|EAAA[\w-]{56,64}(?!\w))"),
    _token("paypal token", "access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{12,20}\$[0-9a-f]{30,40}"),
    _token("razorpay key", "rzp_", r"rzp_(?:live|test)_[A-Za-z0-9]{14,24}"),
    _token("facebook token", "EAA", r"EAA[A-Za-z0-9]{80,300}"),
    _token("facebook app token", "|", r"\d{13,17}\|[\w-]{27}(?!\w)"),
    _token("instagram token", "IGQV IGAA", r"IG(?:QV|AA)[\w-]{80,300}"),
    _token("twitter bearer token", "AAAAAAAAAAAAAAAAAAAAA", r"A{20,24}[A-Za-z0-9%]{40,160}"),
    _token("dropbox token", "sl.", r"sl\.(?:u\.)?[\w-]{100,2000}"),
    _token("figma token", "figd_ figu_", r"fig[du]_[\w-]{30,80}"),
    _token("linear key", "lin_api_ lin_oauth_ lin_wh_", r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{30,80}"),
    _token(
        "notion token",
        "secret_ ntn_",
        r"(?:secret_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{40,50}|ntn_[A-Za-z0-9]{40,60})(?!\w)",
    ),
    _token("airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{50,64}"),
    _token("asana token", "1/", r"[12]/\d{14,18}(?:/\d{14,18})?:[0-9a-f]{32}"),
    _token("hubspot token", "pat-", r"pat-(?:na|eu|ap)\d-[0-9a-f-]{30,40}"),
    _token("mapbox token", "sk.eyJ tk.eyJ", r"[st]k\.eyJ[\w-]{20,400}\.[\w-]{10,60}"),
    _token("twitch stream key", "live_", r"live_\d{6,12}_[A-Za-z0-9]{26,34}"),
    _token("adafruit key", "aio_", r"aio_[A-Za-z0-9]{28}(?!\w)"),
    _token("dependency-track key", "odt_", r"odt_[A-Za-z0-9]{32,48}"),
    _token("mongodb atlas token", "mdb_sa_sk_", r"mdb_sa_sk_[\w-]{36,48}"),
    _token("shippo token", "shippo_", r"shippo_(?:live|test)_[0-9a-fA-F]{36,44}"),
    _token("sourcegraph token", "slk_", r"slk_[0-9a-f]{60,70}"),
    _token("scrapfly key", "scp-live- scp-test-", r"scp-(?:live|test)-[0-9a-f]{32}"),
    _token("pixie key", "px-api- px-dep-", r"px-(?:api|dep)-[0-9a-z-]{36}"),
    _token("postman key", "PMAT-", r"PMAT-[A-Z0-9]{24,28}"),
    _token("posthog key", "phx_ phs_ phr_ pha_", r"ph[xsra]_[\w-]{40,70}"),
    _token("salesforce token", "00D", r"00D[A-Za-z0-9]{9,15}![A-Za-z0-9_.]{60,200}"),
    _token("defined networking key", "dnkey-", r"dnkey-[\w=-]{26,30}-[\w=-]{40,60}"),
    _token("infracost key", "ico-", r"ico-[A-Za-z0-9]{32}(?!\w)"),
    _token("frame.io token", "fio-u-", r"fio-u-[\w=-]{50,80}"),
    _token("duffel token", "duffel_", r"duffel_(?:live|test)_[\w=-]{30,60}"),
    _token("flutterwave key", "FLWSECK", r"FLWSECK(?:_TEST)?-[0-9a-h]{12,40}-X"),
    _token("openshift token", "sha256~", r"sha256~[\w-]{40,50}"),
    _token("intra42 secret", "s-s4t2", r"s-s4t2(?:ud|af)-[0-9a-f]{60,70}"),
    _token("harness token", "pat. sat.", r"[ps]at\.[\w-]{20,24}\.[0-9a-zA-Z]{20,26}\.[0-9a-zA-Z]{18,24}"),
    _token("settlemint token", "sm_pat_ sm_aat_ sm_sat_", r"sm_[pas]at_[A-Za-z0-9]{10,24}"),
    _token("postman key", "PMAK-", r"PMAK-[0-9a-f]{20,28}-[0-9a-f]{30,36}"),
    _token(
        "grafana token",
        "glsa_ glc_ eyJrIjoi",
        r"(?:glsa_[\w-]{30,60}|glc_[A-Za-z0-9+/=]{32,400}|eyJrIjoi[A-Za-z0-9]{40,400}={0,2})",
    ),
    _token(
        "new relic key",
        "NRAK- NRII- NRIQ- NRAA- NRAL",
        r"(?:NR(?:AK|II|IQ|AA)-[\w-]{16,40}|(?:[a-z]{2}\d\dxx)?[0-9a-f]{28,40}NRAL)(?![\w-])",
    ),
    _token("sentry token", "sntrys_ sntryu_", r"sntry[su]_[\w=+/.-]{30,300}"),
    _token("dynatrace token", "dt0", r"dt0[a-z]\d{2}\.[A-Za-z0-9]{20,28}\.[A-Za-z0-9]{50,70}"),
    _token("honeycomb key", "hcaik_ hcamk_ hcalk_", r"hca[ilm]k_[a-z0-9]{24,80}"),
    _token(
        "launchdarkly key", "sdk- api-", r"(?:sdk|api)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    ),
    _token("contentful token", "CFPAT-", r"CFPAT-[\w-]{40,50}"),
    _token("typeform token", "tfp_", r"tfp_[\w-]{40,80}"),
    _token("prefect key", "pnu_ pnb_", r"pn[ub]_[A-Za-z0-9]{30,40}"),
    _token("readme key", "rdme_", r"rdme_[a-z0-9]{40,80}"),
    # Keys and signed tokens
    _token("age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{30,80}"),
    _token("nats seed", "SU SA SC SO SN SX", r"S[ACNOUX][A-Z2-7]{56}(?![A-Z0-9])"),
    _within("ntlm token", "TlRMTVNTUAAD", r"TlRMTVNTUAAD[A-Za-z0-9+/=]{20,4000}"),
    TokenRule(
        "jwt",
        ("eyJ",),
        r"(?<![\w-])eyJ[\w-]{8,8000}+\.[\w-]{8,16000}+\.(?:[\w-]{4,8000}+)?(?:\.[\w-]{4,16000}+){0,2}",
    ),
    TokenRule(
        "signed cookie",
        ("eyJ", "eJ"),
        r"(?<![\w-])e(?:yJ|J)[\w-]{16,4000}+:[A-Za-z0-9]{6}:[\w-]{27,44}(?![\w-])",
    ),
    _within(
        "password hash",
        "$2 $1$ $5$ $6$ $8$ $9$ $y$ $apr1$ $argon2 $scrypt pbkdf2_ $krb5",
        r"(?:\$2[abxy]\$\d\d\$[./A-Za-z0-9]{50,53}|\$krb5\w{2,8}\$\d\d\$[^\s\"']{40,4000}"
        r"|\$(?:1|5|6|8|9|y|apr1)\$[^\s$:]{1,40}\$(?:[./A-Za-z0-9]{1,40}\$)?[./A-Za-z0-9]{20,90}"
        r"|\$argon2(?:id|i|d)\$v=\d{1,3}\$[\w=,]{5,60}\$[\w+/-]{8,100}\$[\w+/-]{16,200}"
        r"|pbkdf2_sha\d{1,3}\$\d{3,8}\$[\w+/=-]{4,60}\$[\w+/=-]{20,100})",
    ),
)

# What spans white space, and therefore runs over the whole text.
PHRASE_RULES: Final[tuple[TokenRule, ...]] = (
    _token(
        "aws secret key",
        "AKIA ASIA",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}[\"'`,:;|/\s]{1,12}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    _within("json web key", '"kty"', r"\"(?:d|k|p|q|dp|dq|qi)\"\s{0,4}:\s{0,4}\"([\w-]{16,4000})\""),
    # Passwords that stand in a place made for them
    _within("password", "@tcp( @unix( @tcp6(", r"(?<![^\s\"'`=(])[\w.-]{1,64}:([^\s\"'`:@/]{1,100})@(?:tcp6?|unix)\("),
    _within("password", "oracle", r"jdbc:oracle:\w{1,10}:[\w.-]{1,64}/([^\s\"'`@/]{1,100})@"),
    _within(
        "password",
        "machine",
        r"\bmachine\s{1,20}\S{1,200}\s{1,40}login\s{1,20}\S{1,200}\s{1,40}password\s{1,20}(\S{1,200})",
    ),
    _within("password", ":5432: :*:", r"(?m)^[\w.*-]{1,100}:(?:5432|\*):[\w*-]{1,64}:[\w*-]{1,64}:([^\s:]{3,100})$"),
    _within(
        "password",
        "curl wget http",
        r"\b(?:curl|wget|http|https)\s(?:(?:[^\n|;<]|\\\n){0,200}?\s)?(?:-u|--user|-a|--auth|--proxy-user"
        r"|-U)[ =]?[\"']?[^\s\"':]{0,64}:([^\s\"'`$<{]{3,100})",
    ),
    _within(
        "password",
        "IDENTIFIED identified",
        r"(?i:identified\s{1,4}with)\s{1,4}\S{1,60}\s{1,4}(?i:by|as)\s{1,4}['\"]([^'\"\s]{3,200})['\"]",
    ),
    _within(
        "vault unseal key",
        "unseal Unseal",
        r"(?i:unseal(?:\skey\s\d)?:?)\s{1,4}(?=[a-z+/]{0,60}[A-Z0-9])([A-Za-z0-9+/]{40,64}={0,2})(?![\w/+])",
    ),
    _within("okta token", "okta Okta OKTA", r"(?<![\w-])00(?=[A-Za-z_-]{0,38}\d)[\w-]{40}(?![\w-])"),
    _within(
        "sonar token", "sonar", r"(?i:sonar[._]?login)[\"']?\s{0,4}[,:=]{1,2}\s{0,4}[\"']?([0-9a-f]{40})(?![0-9a-f])"
    ),
    _within(
        "password",
        "NetworkCredential",
        r"NetworkCredential\(\s{0,4}\"[^\"\n]{0,100}\"\s{0,4},\s{0,4}\"([^\"\n]{3,100})\"",
    ),
    _within(
        "password", "sexec SEXEC sExec SExec", r"(?i:psexec(?:\.exe)?\s[^\n|;<]{0,160}?\s-p\s{1,4})([^\s\"'%$<]{3,100})"
    ),
    _within(
        "private key",
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVk|BQUklWQVRF|BPUEVOU1NIIFBSSVZBVEUg|BFQyBQUklWQVRF|BFTkNSWVBURUQgUFJJVk"
        r"|BEU0EgUFJJVk|BQR1AgUFJJVk)[A-Za-z0-9+/=]{20,8000}",
    ),
    _within(
        "password",
        "requirepass masterauth",
        r"(?m)^\s{0,8}(?:requirepass|masterauth):?\s{1,8}[\"']?([^\s\"'<$]{3,200})",
    ),
    _within("password", "sshpass", r"\bsshpass\s{1,4}-p\s{0,4}[\"']?([^\s\"'`$<{]{2,100})"),
    _within(
        "password",
        "mysql mariadb",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\s[^\n|;<]{0,100}?(?<=\s)-p[\"']?([^\s\"'`$<{]{2,100})",
    ),
    _within("password", "redis-cli", r"\bredis-cli\s[^\n|;<]{0,100}?(?:-a|--pass)\s{1,4}[\"']?([^\s\"'`$<{]{2,100})"),
    _within(
        "password",
        "login",
        r"\b(?:docker|podman|helm|oc|az|crane|skopeo)\s(?:\w{1,20}\s)?login\s[^\n|;<]{0,150}?(?<=\s)(?:-p"
        r"|--password)[ =][\"']?([^\s\"'`$<{]{2,100})",
    ),
    _within(
        "password",
        "chpasswd",
        r"echo\s{1,4}[\"']?[\w.-]{1,40}:([^\s\"'`$<{]{2,100})[\"']?\s{0,4}\|\s{0,4}(?:sudo\s)?chpasswd",
    ),
    _within("password", "pass:", r"-pass(?:in|out)?\s{1,4}[\"']?pass:([^\s\"'`$<{]{2,100})"),
    _within(
        "password",
        "ConvertTo-SecureString",
        r"ConvertTo-SecureString\s{1,4}(?:-\w{1,12}\s{1,4}){0,3}[\"'\\]{0,3}([^\s\"'`$\\-][^\s\"'\\]{3,100})",
    ),
)
