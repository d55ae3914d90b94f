"""Finds secrets by their own form, whatever the context: one line each, found by a fixed prefix."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache

from holdfast.redaction.literals import one_of, places
from holdfast.redaction.values import is_blanked

Span = tuple[int, int]

_FORMS: tuple[tuple[str, str, str], ...] = (
    # issuer, the literals that it is found by, what follows such a literal
    ("Holdfast, Hugging Face", "hf_", r"[A-Za-z0-9_-]{16,}"),
    ("JSON web token", "eyJ", r"[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}"),
    ("encrypted JSON web token", "eyJ", r"[A-Za-z0-9_-]{8,4000}+\.\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,2}"),
    ("Anthropic, OpenAI and others", "sk-", r"(?:ant|proj|live|test|or|svcacct|admin|lf|None)-[A-Za-z0-9_-]{6,}"),
    ("OpenAI, DeepSeek", "sk-", r"(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}"),
    ("Stripe secret", "sk_", r"(?:live|test|prod)_[A-Za-z0-9]{8,}"),
    ("Stripe restricted", "rk_", r"(?:live|test|prod)_[A-Za-z0-9]{8,}"),
    ("ElevenLabs", "sk_", r"[a-f0-9]{40,}"),
    ("Stripe webhook", "whsec_", r"[A-Za-z0-9+/=]{16,}"),
    ("GitHub", "ghp_|gho_|ghu_|ghs_|ghr_", r"[A-Za-z0-9]{16,}"),
    ("GitHub fine-grained", "github_pat_", r"[A-Za-z0-9_]{20,}"),
    (
        "GitLab",
        "glpat-|gldt-|glrt-|glrtr-|glptt-|glcbt-|glft-|glimt-|glagent-|gloas-|glsoat-|glffct-|glwt-",
        r"[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_.-]+)?",
    ),
    ("GitLab runner", "GR1348941", r"[A-Za-z0-9_-]{20,}"),
    ("AWS access key", "AKIA|ASIA|ABIA|ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("AWS Bedrock", "ABSK", r"[A-Za-z0-9+/=]{60,}"),
    ("Slack", "xox", r"[abceoprsd](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}"),
    ("Slack app", "xapp-", r"[A-Za-z0-9-]{8,}"),
    ("npm", "npm_", r"[A-Za-z0-9]{20,}"),
    ("PyPI", "pypi-", r"[A-Za-z0-9_-]{32,}"),
    ("RubyGems", "rubygems_", r"[a-f0-9]{32,}"),
    ("crates.io", "cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("NuGet", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("Docker Hub", "dckr_", r"(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("Google API", "AIza", r"[A-Za-z0-9_-]{30,}"),
    ("Google OAuth", "ya29.", r"[A-Za-z0-9_-]{16,}"),
    ("Google OAuth refresh", "1//", r"0[A-Za-z0-9_-]{30,}"),
    ("Google OAuth client", "GOCSPX-", r"[A-Za-z0-9_-]{16,}"),
    ("SendGrid", "SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("Mailgun", "key-", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("Mailgun domain", "pubkey-", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("Mailjet, Brevo", "xkeysib-", r"[a-f0-9]{32,}-[A-Za-z0-9]{8,}"),
    ("Brevo SMTP", "xsmtpsib-", r"[a-f0-9]{32,}-[A-Za-z0-9]{8,}"),
    ("Postmark, Resend", "re_", r"(?=[A-Za-z]*\d)[A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,}"),
    ("Twilio", "SK", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("DigitalOcean", "doo_v1_|dop_v1_|dor_v1_", r"[a-f0-9]{32,}"),
    ("HashiCorp Vault", "hvs.|hvb.|hvr.", r"[A-Za-z0-9_-]{20,}"),
    ("Databricks", "dapi", r"[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    ("Databricks OAuth", "dose", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("Linear", "lin_", r"(?:api|oauth)_[A-Za-z0-9]{20,}"),
    ("Replicate", "r8_", r"[A-Za-z0-9]{30,}"),
    ("Groq", "gsk_", r"[A-Za-z0-9]{30,}"),
    ("xAI", "xai-", r"[A-Za-z0-9]{40,}"),
    ("Perplexity", "pplx-", r"[A-Za-z0-9]{30,}"),
    ("NVIDIA", "nvapi-", r"[A-Za-z0-9_-]{40,}"),
    ("Fireworks", "fw_", r"(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}"),
    ("LangSmith", "lsv2_", r"(?:pt|sk)_[a-f0-9]{20,}_[a-f0-9]{6,}"),
    ("Tavily", "tvly-", r"[A-Za-z0-9-]{20,}"),
    ("Firecrawl", "fc-", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("Cerebras", "csk-", r"[a-z0-9]{30,}"),
    ("Jina", "jina_", r"[a-f0-9]{20,}[A-Za-z0-9_-]*"),
    ("Voyage", "pa-", r"(?=[A-Za-z_-]{0,42}+\d)[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    ("Pinecone", "pcsk_", r"[A-Za-z0-9_]{30,}"),
    ("Together", "tgp_v1_", r"[A-Za-z0-9_-]{30,}"),
    ("E2B", "e2b_", r"[a-f0-9]{30,}"),
    ("Doppler", "dp.", r"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}"),
    ("Infisical", "st.", r"[a-f0-9]{24}\.[a-f0-9]{20,}\.[a-f0-9]{20,}"),
    ("Heroku", "HRKU-", r"[A-Za-z0-9_-]{30,}"),
    ("Fly.io", "fm1a_|fm1r_|fm2_", r"[A-Za-z0-9+/=,_]{40,}"),
    ("Fly.io access", "fo1_", r"[A-Za-z0-9_-]{30,}"),
    ("Render", "rnd_", r"(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}"),
    ("Supabase", "sbp_", r"[a-f0-9]{30,}"),
    ("Supabase key", "sb_", r"secret_[A-Za-z0-9_-]{20,}"),
    ("PlanetScale", "pscale_", r"(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}"),
    ("Neon", "napi_", r"[a-z0-9]{30,}"),
    ("Pulumi", "pul-", r"[a-f0-9]{40}(?![A-Za-z0-9])"),
    ("Terraform Cloud", ".atlasv1.", r"[A-Za-z0-9_=-]{40,}"),
    ("Vercel", "vcp_|vci_|vca_|vcr_|vck_", r"[A-Za-z0-9]{24,}"),
    ("Vercel blob", "vercel_blob_rw_", r"[A-Za-z0-9_]{20,}"),
    ("Netlify", "nfp_|nfc_|nfo_|nfb_|nfu_", r"[A-Za-z0-9]{30,}"),
    ("Cloudflare origin", "v1.0-", r"[a-f0-9]{24}-[a-f0-9]{100,}"),
    ("Cloudflare", "cfk_|cfut_|cfat_", r"[A-Za-z0-9]{40,}"),
    ("Alibaba", "LTAI", r"[A-Za-z0-9]{12,24}(?![A-Za-z0-9])"),
    ("Tencent", "AKID", r"(?=[A-Za-z]*\d)[A-Za-z0-9]{28,36}(?![A-Za-z0-9])"),
    ("Yandex", "AQVN", r"[A-Za-z0-9_-]{30,}"),
    ("Yandex IAM", "t1.", r"[A-Za-z0-9_=-]{20,}\.[A-Za-z0-9_=-]{60,}"),
    ("IBM", "p8e-", r"[A-Za-z0-9_-]{30,}"),
    ("Scaleway", "SCW", r"[A-Z0-9]{17}(?![A-Za-z0-9])"),
    ("Notion", "ntn_", r"[A-Za-z0-9]{30,}"),
    ("Notion, earlier", "secret_", r"(?=[A-Za-z]*\d)[A-Za-z0-9]{40,}"),
    ("Airtable", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{40,}"),
    ("Figma", "figd_|figo_|figou_|figoh_", r"[A-Za-z0-9_-]{20,}"),
    ("Asana", "1/", r"\d{12,20}:[a-f0-9]{32}"),
    ("Asana 2", "2/", r"\d{12,20}/\d{12,20}:[a-f0-9]{32}"),
    ("Atlassian", "ATATT|ATCTT|ATSTT|ATBB", r"[A-Za-z0-9_-]{20,}(?:=[A-F0-9]{8})?"),
    ("Postman", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{30,}"),
    ("Shopify", "shpat_|shpca_|shppa_|shpss_|shprt_", r"[A-Fa-f0-9]{30,}"),
    ("Square", "sq0", r"[a-z]{3}-[A-Za-z0-9_-]{20,}"),
    ("Square, Facebook", "EAA", r"(?=[A-Za-z_-]{0,200}+\d)[A-Za-z0-9_-]{50,}"),
    ("Dropbox", "sl.", r"(?:u\.)?[A-Za-z0-9_-]{60,}"),
    ("New Relic", "NRAK-|NRII-|NRJS-|NRAA-|NRRA-|NRSP-", r"[A-Za-z0-9_-]{20,}"),
    ("Grafana service account", "glsa_", r"[A-Za-z0-9]{20,}_[a-f0-9]{8}"),
    ("Grafana Cloud", "glc_", r"[A-Za-z0-9+/=]{30,}"),
    ("Sentry", "sntry", r"[su]_[A-Za-z0-9+/=_-]{30,}"),
    ("PostHog", "phx_|phs_|phr_", r"[A-Za-z0-9]{30,}"),
    ("Honeycomb", "hcaik_|hcamk_|hcakk_", r"[a-z0-9]{30,}"),
    ("Datadog", "ddapp_|ddpat_", r"[A-Za-z0-9]{30,}"),
    ("CircleCI", "CCIPAT_|CCIPRJ_", r"[A-Za-z0-9]{10,}_[a-f0-9]{30,}"),
    ("Buildkite", "bkua_|bkaj_|bkct_|bkat_|bkpi_", r"[a-f0-9]{30,}"),
    ("SonarQube", "squ_|sqp_|sqa_", r"[a-f0-9]{40}"),
    ("Snyk", "snyk_", r"[a-z]{3}\.[A-Za-z0-9_.-]{30,}"),
    ("JFrog", "AKCp", r"[A-Za-z0-9]{50,}"),
    ("JFrog reference", "cmVmd", r"[A-Za-z0-9]{50,}"),
    ("age", "AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}"),
    ("1Password service account", "ops_eyJ", r"[A-Za-z0-9+/=_-]{100,}"),
    ("1Password secret key", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("Tailscale", "tskey-", r"[a-z]{3,12}-[A-Za-z0-9-]{16,}"),
    ("Mapbox", "sk.eyJ", r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}"),
    ("Plaid", "access-", r"(?:sandbox|development|production)-[a-f0-9]{8}-[a-f0-9-]{27}"),
    ("Braintree", "access_token$", r"(?:production|sandbox)\$[a-z0-9]{12,}\$[a-f0-9]{32}"),
    ("Contentful", "CFPAT-", r"[A-Za-z0-9_-]{40,}"),
    ("Prefect", "pnu_", r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("Typeform", "tfp_", r"[A-Za-z0-9_.-]{40,}"),
    ("ReadMe", "rdme_", r"[a-z0-9]{60,}"),
    ("Frame.io", "fio-u-", r"[A-Za-z0-9_=-]{50,}"),
    ("EasyPost", "EZAK|EZTK", r"[a-f0-9A-Za-z]{50,}"),
    ("Shippo", "shippo_", r"(?:live|test)_[a-f0-9]{30,}"),
    ("Flutterwave", "FLWSECK", r"(?:_TEST)?-[A-Za-z0-9]{12,}"),
    ("Razorpay", "rzp_", r"(?:live|test)_[A-Za-z0-9]{14}"),
    ("Adyen", "AQE", r"[a-z0-9A-Z]{2}hmf[A-Za-z0-9+/=._-]{40,}"),
    ("Intra42", "s-s4t2", r"(?:ud|af)-[a-f0-9]{40,}"),
    ("Lob, live and test", "live_", r"(?=[a-z]*\d)[a-f0-9]{32,}"),
    ("Duffel", "duffel_", r"(?:live|test)_[A-Za-z0-9_=-]{30,}"),
    ("Rollbar, Scalingo", "tk-us-", r"[A-Za-z0-9_-]{40,}"),
    ("Sourcegraph", "sgp_|sgd_", r"(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40}"),
    ("Teleport, Nightfall", "NF-", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("MaxMind", "mmk_", r"(?=[A-Za-z_]{0,200}+\d)[A-Za-z0-9_]{30,}"),
    ("Harness", "pat.", r"[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"),
    ("Zuplo", "zpka_", r"[a-z0-9]{30,}_[a-f0-9]{8}"),
    ("LaunchDarkly", "sdk-", r"[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9-]{22}"),
    ("LaunchDarkly API", "api-", r"[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9-]{22}"),
    ("Stytch", "secret-", r"(?:live|test)-[A-Za-z0-9_=-]{20,}"),
    ("Clickhouse", "4b1d", r"[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("Settlemint", "sm_", r"(?:pat|aat|sat)_[A-Za-z0-9]{16}"),
    ("Azure AD client", "8Q~", r"[A-Za-z0-9_.~-]{31,34}"),
    ("Apify", "apify_api_", r"[A-Za-z0-9]{30,}"),
    ("Bitrise, Deno", "ddp_", r"[A-Za-z0-9]{30,}"),
    ("Convex, Turso and others", "prod:", r"[a-z0-9-]{6,40}\|[A-Za-z0-9+/=_-]{30,}"),
    ("Expo, Mux and others", "expo_", r"(?=[A-Za-z_-]{0,200}+\d)[A-Za-z0-9_-]{30,}"),
    ("OpenShift", "sha256~", r"[A-Za-z0-9_-]{40,}"),
    ("Bitcoin extended key", "xprv", r"[A-Za-z0-9]{100,}"),
    ("Twitter bearer", "AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{30,}"),
    ("Twitch", "oauth:", r"[a-z0-9]{30}(?![A-Za-z0-9])"),
    ("LDAP hash", "{SHA}|{SSHA}|{SHA256}|{SSHA256}|{SHA512}|{SSHA512}|{PBKDF2", r"[^\s:\"'<>]{20,400}+"),
    ("PostgreSQL hash", "SCRAM-SHA-256$", r"\d+:[A-Za-z0-9+/=$:]{40,}"),
    ("crypt hash", "$2a$|$2b$|$2x$|$2y$|$1$|$5$|$6$|$y$|$apr1$|$argon2|$pbkdf2", r"[^\s:\"'<>]{20,400}+"),
    ("ClickUp", "pk_", r"\d{5,12}_[A-Z0-9]{20,}"),
    ("HubSpot", "pat-", r"(?:na|eu|ap)\d-[a-f0-9-]{36}"),
    ("Instagram", "IGQ|IGAA", r"[A-Za-z0-9_-]{50,}"),
    ("Docker swarm", "SWMTKN-", r"[a-z0-9]{1,4}-[a-z0-9]{25,}-[a-z0-9]{20,}"),
    ("NATS", "SU|SA|SO|SN|SC", r"[A-Z2-7]{56}(?![A-Za-z0-9])"),
    ("Bitcoin, a private key", "5H|5J|5K", r"[1-9A-HJ-NP-Za-km-z]{49}(?![A-Za-z0-9])"),
    ("Nostr", "nsec1", r"[a-z0-9]{50,}"),
    ("Yandex OAuth", "y0_|y1_", r"[A-Za-z0-9_-]{30,}"),
    ("AWS session", "FwoGZXIvYXdz|IQoJb3JpZ2lu", r"[A-Za-z0-9+/=_-]{30,}"),
    ("AWS marketplace", "amzn.mws.", r"[a-f0-9-]{36}"),
    ("Amazon login", "amzn1.oa2-cs.v1.", r"[a-f0-9]{40,}"),
    ("Amazon access", "Atza|Atzr", r"\|[A-Za-z0-9_+/=-]{30,}"),
    ("WooCommerce", "cs_|ck_", r"[a-f0-9]{40}(?![A-Za-z0-9])"),
    ("Trello", "ATTA", r"[a-f0-9]{60,}"),
    ("Firebase messaging", "AAAA", r"[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{100,}"),
    ("Dynatrace", "dt0", r"[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{40,64}"),
    ("Adafruit", "aio_", r"[A-Za-z0-9]{28}(?![A-Za-z0-9])"),
    ("eBay", "v^1.1#i^1#", r"[^\s\"']{30,}"),
    ("MercadoPago", "APP_USR-", r"\d{10,20}-\d{6}-[a-f0-9_-]{20,}"),
    ("PASETO", "v1.|v2.|v3.|v4.", r"(?:local|public)\.[A-Za-z0-9_-]{40,}(?:\.[A-Za-z0-9_-]+)?"),
    ("Clojars", "CLOJARS_", r"[a-z0-9]{50,}"),
    ("Anyscale", "esecret_", r"[a-z0-9]{20,}"),
    ("RunPod", "rpa_", r"[A-Za-z0-9]{30,}"),
    ("Xata", "xau_", r"[A-Za-z0-9]{20,}"),
    ("Axiom", "xaat-|xapt-|xait-", r"[a-f0-9-]{36}"),
    ("Coralogix", "cxtp_|cxth_", r"[A-Za-z0-9]{24,}"),
    ("Logfire", "pylf_v", r"\d_[A-Za-z0-9_]{30,}"),
    ("Infracost", "ico-", r"(?=[A-Za-z]*\d)[A-Za-z0-9]{30,}"),
    ("GitBook", "gb_api_", r"[A-Za-z0-9]{30,}"),
    ("Chromatic", "chpt_", r"[a-f0-9]{12,}"),
    ("Depot", "depot_", r"(?:project|org|user)_[a-f0-9]{40,}"),
    ("Defined Networking", "dnkey-", r"[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}"),
    ("Discord user", "mfa.", r"[A-Za-z0-9_-]{60,}"),
    ("Salesforce", "00D", r"[A-Za-z0-9]{9,15}![A-Za-z0-9_.]{40,}"),
    ("Okta", "00", r"(?=[A-Za-z_-]{0,38}\d)(?=[a-z0-9_-]{0,38}[A-Z])[A-Za-z0-9_-]{40}(?![A-Za-z0-9_-])"),
    ("Fly.io, version 1", "FlyV1 ", r"[A-Za-z0-9+/=,_]{20,}"),
    ("Nix signing key", "-1:|-2:", r"(?P<secret>[A-Za-z0-9+/]{80,88}={0,2})(?![A-Za-z0-9+/=])"),
    ("Rancher", "token-", r"[a-z0-9]{5}:[a-z0-9]{40,}"),
    # Webhooks: anyone who knows the address may post there.
    ("Slack hook", "hooks.slack.com/", r"(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{8,})"),
    ("Discord hook", "/api/webhooks/", r"\d{5,25}/(?P<secret>[A-Za-z0-9_-]{20,})"),
    ("Teams hook", "webhook.office.com/", r"webhookb2/(?P<secret>[A-Za-z0-9@/_-]{20,})"),
    ("Zapier hook", "hooks.zapier.com/", r"hooks/catch/(?P<secret>[A-Za-z0-9/]{6,})"),
    ("Feishu and Lark hook", "/open-apis/bot/", r"v2/hook/(?P<secret>[A-Za-z0-9-]{16,})"),
    ("Loggly", "loggly.com/", r"(?:inputs|bulk)/(?P<secret>[a-f0-9-]{30,})"),
    ("health check", "hc-ping.com/", r"(?P<secret>[A-Za-z0-9-]{16,})"),
    ("Anaconda", "anaconda.org/", r"t/(?P<secret>[A-Za-z0-9-]{16,})"),
    ("Make hook", ".make.com/", r"(?P<secret>[a-z0-9]{28,})"),
    ("IFTTT hook", "maker.ifttt.com/", r"[A-Za-z0-9/_-]{1,100}/key/(?P<secret>[A-Za-z0-9_-]{16,})"),
    ("Google Chat hook", "chat.googleapis.com/", r"[^\s\"']{1,200}?token=(?P<secret>[A-Za-z0-9_%=-]{16,})"),
    ("Sentry DSN", "https://", r"(?P<secret>[a-f0-9]{32})(?=@)"),
)

_ANYWHERE = frozenset({".atlasv1.", "8Q~"})
"""These literals occur in the middle of the token."""
_SEPARATE = r"(?<![A-Za-z0-9])"


@cache
def _compiled(literal: str, rest: str) -> re.Pattern[str]:
    separate = "" if literal in _ANYWHERE or not literal[0].isalnum() else _SEPARATE
    return re.compile(separate + re.escape(literal) + rest)


_SOURCES = [(literal, rest) for _, listed, rest in _FORMS for literal in listed.split("|")]
_LITERALS = sorted({literal for literal, _ in _SOURCES})
_PATTERNS = {literal: [source for source in _SOURCES if literal.startswith(source[0])] for literal in _LITERALS}
"""The forms that may begin with each literal."""
_BEGINNINGS = re.compile(
    f"{_SEPARATE}(?=(?P<literal>{one_of(one for one in _LITERALS if one[0].isalnum() and one not in _ANYWHERE)}))"
)
_INSIDE = [one for one in _LITERALS if not one[0].isalnum() or one in _ANYWHERE]
MIN_SHAPE_CHARS = 32

_JWT = "eyJ"
_RUN = re.compile(r"[A-Za-z0-9_-]*+")
_BESIDE = re.compile(r"[A-Za-z0-9_.~-]{1,60}\Z")
_TELEGRAM = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=bot))\d{6,12}+:[A-Za-z0-9_-]{30,}")
_MAILCHIMP = re.compile(r"(?<![A-Za-z0-9])[a-f0-9]{32}-us\d{1,2}(?![A-Za-z0-9])")
_DISCORD_BOT = re.compile(
    r"(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{5,7}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_.-])"
)
_NGROK = re.compile(r"(?<![A-Za-z0-9_-])[12][A-Za-z0-9]{25,26}_[A-Za-z0-9]{20,23}(?![A-Za-z0-9_-])")
_PRODUCT_KEY = re.compile(r"(?<![A-Za-z0-9-])(?=[A-Z-]{0,28}\d)[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4}(?![A-Za-z0-9-])")
_RECOVERY_KEY = re.compile(
    r"(?<![\w-])(?:\d{6}(?:-\d{6}){7}|(?=[A-Z-]{0,20}\d)[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5})(?![\w-])"
)
"""The formats of BitLocker and FileVault."""
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=_.:-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_.-])")
_OWNER_KEY = re.compile(r"(?<![A-Za-z0-9_:/+=.-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_:/+=.-]|\()")
"""Holdfast's owner key and other values of 32 random bytes: 43 characters without a prefix."""
_PREFIXED = re.compile(
    r"(?<![A-Za-z0-9_./-])(?=[a-z])(?P<prefix>(?:[A-Za-z0-9]{1,12}[_-]){1,4}+)(?P<tail>[A-Za-z0-9]{20,200}+)(?![A-Za-z0-9_-])"
)
"""A short prefix and many characters: the usual token format today."""
_OF_TOKENS = frozenset([
    "sk", "sec", "secret", "key", "apikey", "api", "pat", "tok", "token", "tkn", "live", "prod", "auth", "priv", "private", "access", "refresh",
    "oauth", "service", "svc", "server", "admin", "bot", "hook", "webhook", "deploy", "ingest", "sdk", "sess", "session", "pass", "pw", "ak", "rk",
    "pk", "sa", "at", "rt", "user", "personal", "org",
])  # fmt: skip
"""Prefixes that mean a token, and not an event, a customer or a message."""
_KEY_OF_32_BYTES = re.compile(r"(?<![A-Za-z0-9_:/+=.-])[A-Za-z0-9+/_-]{43}=(?![A-Za-z0-9_:/+=-])")
PUBLIC_VALUE = re.compile(
    r"(?i)(?:pub|peer|sha|hash|digest|integrity|checksum|fingerprint|etag|cert|csp|nonce|signature|md5|ssh-|base64|(?:request|trace|span|correlation|event|message|user|account)[ _-]?id)|\"[xyn]\"\s?:\s?\"\Z"
)
"""Text before a value that may be public."""
_APP_PASSWORD = re.compile(r"(?<=[\"'`])[a-z]{4}(?: [a-z]{4}){3}(?=[\"'`])")
"""The format of Google's app passwords."""
_SHAPES = (
    ("us", _MAILCHIMP),
    (":", _TELEGRAM),
    (".", _DISCORD_BOT),
    ("_", _NGROK),
    ("-", _PRODUCT_KEY),
    ("-", _RECOVERY_KEY),
    (" ", _APP_PASSWORD),
)


def token_spans(text: str) -> Iterator[Span]:
    """Yield tokens of a known form."""
    covered = run_ends = 0
    for beginning in _BEGINNINGS.finditer(text):
        if beginning["literal"] == _JWT:
            # A run without a dot behind it has no such token, however many begin in it: it is read once.
            if beginning.start() >= run_ends and (run := _RUN.match(text, beginning.start())) is not None:
                run_ends = run.end()
            if not text.startswith(".", run_ends):
                continue
        if beginning.start() >= covered:
            for span in _of_form(text, beginning["literal"], beginning.start()):
                covered = max(covered, span[1])
                yield span
    for literal in [one for one in _INSIDE if one in text]:
        covered = 0
        for place in places(text, literal):
            if place >= covered:
                for span in _of_form(text, literal, place):
                    covered = max(covered, span[1])
                    yield span
    if len(text) < MIN_SHAPE_CHARS:
        return
    for needle, pattern in _SHAPES:
        if needle in text:
            for found in pattern.finditer(text):
                yield found.span()
    shapes = [_OWNER_KEY, _AWS_SECRET] if "AKIA" in text or "aws" in text or "AWS" in text else [_OWNER_KEY]
    if "=" in text:
        shapes.append(_KEY_OF_32_BYTES)
    for found in (one for shape in shapes for one in shape.finditer(text)):
        if is_random(found[0]) and not PUBLIC_VALUE.search(text, max(0, found.start() - 40), found.start()):
            yield found.span()
    if "_" in text or "-" in text:
        for found in _PREFIXED.finditer(text):
            if _OF_TOKENS.intersection(found["prefix"].lower().replace("-", "_").split("_")) and is_random(
                found["tail"]
            ):
                yield found.span()


def _of_form(text: str, literal: str, place: int) -> Iterator[Span]:
    for source in _PATTERNS[literal]:
        pattern = _compiled(*source)
        match = pattern.match(text, place)
        if match is None:
            continue
        start, end = match.span("secret") if "secret" in pattern.groupindex else match.span()
        if literal in _ANYWHERE:
            before = _BESIDE.search(text, max(0, start - 60), start)
            start = before.start() if before else start
        if "secret" in pattern.groupindex or not is_blanked(text[start:end]):
            yield start, end


def is_random(value: str) -> bool:
    """Return whether a word is random: its cases and digits change too often for a person or a naming scheme."""
    digits = sum(char.isdigit() for char in value)
    upper = sum(char.isupper() for char in value)
    lower = sum(char.islower() for char in value)
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" if char.islower() else "s" for char in value]
    changes = sum(one != other for one, other in itertools.pairwise(kinds))
    words = sum(one == "l" and other != "l" for one, other in itertools.pairwise([*kinds, ""]))
    return digits >= 2 and upper >= 5 and lower >= 5 and changes >= len(value) // 3 and lower < MAX_MEAN_RUN * words


MAX_MEAN_RUN = 2.8
"""Lower-case letters in a row, on average; names in code have longer words."""
