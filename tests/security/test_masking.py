"""Credentials in payloads, errors and statements are hidden until the operator asks to see them."""

from __future__ import annotations

import json
from time import thread_time

import pytest

from gw_tui.text.json_view import json_view
from gw_tui.text.redact import MASK, is_secret, masked

PEM = "-----BEGIN RSA PRIVATE KEY-----\nhunter2hunter2\nhunter2==\n-----END RSA PRIVATE KEY-----"

# Every form hides `hunter2`. The first part was hidden by the first version, and stays so.
FREE_TEXT = [
    "password=hunter2",
    "password = hunter2",
    "password: hunter2",
    "password => 'hunter2'",
    "password='hunter2 hunter2'",
    'password="hunter2 hunter2"',
    "Password=hunter2",
    "PASSWORD=hunter2",
    "PGPASSWORD=hunter2 psql",
    "passwd=hunter2",
    "passphrase: hunter2",
    "userPass=hunter2",
    "db_pass=hunter2",
    "pass=hunter2&user=me",
    "pwd=hunter2",
    "dbPwd: hunter2",
    "secret=hunter2",
    "client_secret=hunter2",
    "clientSecret: 'hunter2'",
    "AWS_SECRET_ACCESS_KEY=hunter2",
    "token=hunter2",
    "access_token=hunter2",
    "accessToken: hunter2",
    "refresh-token: hunter2",
    "https://example.com/x?token=hunter2&a=1",
    "X-Auth-Token: hunter2",
    "csrfToken=hunter2",
    "Authorization: hunter2",
    "Authorization: Bearer hunter2",
    "Authorization: Basic hunter2=",
    "authorization=Digest hunter2",
    "{'Authorization': 'Bearer hunter2'}",
    "api_key=hunter2",
    "api-key: hunter2",
    "apikey=hunter2",
    "apiKey: hunter2",
    "X-API-Key: hunter2",
    "api_key => 'hunter2'",
    "private_key=hunter2",
    "privateKey: hunter2",
    "private-key=hunter2",
    "credential=hunter2",
    "credentials: hunter2",
    "Cookie: hunter2",
    "Set-Cookie: hunter2; path=/",
    "card=hunter2",
    "cardNumber: hunter2",
    "card_no=hunter2",
    "iban=hunter2",
    "IBAN: hunter2",
    "cvv=hunter2",
    '{"password": "hunter2"}',
    '{"token":"hunter2","a":1}',
    "{'secret': 'hunter2'}",
    '{"api_key":hunter2}',
    '"password":"hunter2',
    "cannot reach postgres://me:hunter2@db/app",
    "postgresql://me:hunter2@[::1]:5432/app",
    "amqp://guest:hunter2@mq:5672//",
    "redis://:hunter2@cache/0",
    "https://me:hunter2@example.com/x",
    "connection to host=db password=hunter2 failed",
    # -- and these are hidden since --
    "auth=hunter2",
    "userAuth: hunter2",
    "OAUTH=hunter2",
    "session=hunter2",
    "sessionId: hunter2",
    "SESSION_ID=hunter2",
    "connect.sid=hunter2",
    "jwt=hunter2",
    "otp: hunter2",
    "TOTP=hunter2",
    "pin=hunter2",
    "userPin: hunter2",
    "ssn=hunter2",
    "accessKey=hunter2",
    "access_key: hunter2",
    "signing-key=hunter2",
    "bearer=hunter2",
    "sent Bearer hunter2hunter2 to it",
    "signature=hunter2",
    "https://store/x?sig=hunter2",
    "cvc=hunter2",
    "got eyJhbGciOi.hunter2hunter2.hunter2",
    "mysql --password hunter2 -h db",
    "tool --api-key hunter2",
    "tool -password 'hunter2 hunter2'",
    "alter role x password 'hunter2'",
    "alter user x with encrypted password E'hun\\'hunter2'",
    "create user mapping options (user 'x', password 'it''s hunter2')",
    "password='it''s hunter2'",
    '{"password": "a\\"hunter2"}',
    "postgres://me:pa@hunter2@db/app",
    "postgres://me:pa/hunter2@db/app",
    "postgres://me:pa@x/hunter2@db/app",
    "postgres://me:pa'x@hunter2@db/app",
    f"https://me:{'hunter2' * 100}@db/app",
    "https://hooks.slack.com/services/T0/B0/hunter2",
    "https://discord.com/api/webhooks/12/hunter2",
    "https://example.com/webhook/hunter2?x=hunter2",
    'webhook_url: "https://example.com/hunter2"',
    PEM,
    PEM[:60],
    json.dumps(PEM),
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nhunter2\n-----END PGP PRIVATE KEY BLOCK-----",
    '{"name":"password","value":"hunter2"}',
    '{"name": "DB_PASSWORD", "value": "hunter2"}',
    "{'key': 'Authorization', 'value': 'Bearer hunter2'}",
    '{"value": "hunter2", "name": "apiToken"}',
]


@pytest.mark.parametrize("text", FREE_TEXT)
def test_a_credential_in_free_text_is_hidden(text: str) -> None:
    assert "hunter2" in text
    assert "hunter2" not in masked(text)
    assert MASK in masked(text)
    assert "hunter2" not in masked(f"it failed: {text} and more")


CARDS = ["4242424242424242", "4242 4242 4242 4242", "5555-5555-5555-4444", "2223003122003222", "378282246310005"]
CARDS += ["3782 822463 10005", "30569309025904", "6011111111111117", "3566002020360505", "6205500000000000004"]

PREFIXES = ["sk_live_", "rk_test_", "whsec_", "ghp_", "github_pat_", "glpat-", "xoxb-", "ya29.", "AIza", "sk-ant-"]
PREFIXES += ["sk-", "shpat_", "npm_", "pypi-", "hvs.", "hf_", "SK", "SG.x2x2x2x2x2x2x2x2x2."]
# Made here, so that nothing takes them for lost ones.
TOKENS = [f"{prefix}{'0a1b2c3d' * 4}" for prefix in PREFIXES] + ["AKIA" + "IOSFODNN7EXAMPLE"]


@pytest.mark.parametrize("secret", [*CARDS, *TOKENS])
def test_a_secret_is_known_by_its_form(secret: str) -> None:
    for text in (secret, f"it was {secret}.", f"12 {secret}, 34", f'{{"number": "{secret}"}}', f"({secret})"):
        assert secret not in masked(text)
        assert MASK in masked(text)
        assert masked(text).replace(MASK, secret) == text  # nothing else is hidden
    assert secret not in str(json_view(json.dumps({"n": [secret]})))
    if secret.isdigit():
        assert secret not in str(json_view(f'{{"n": {secret}}}'))


@pytest.mark.parametrize(
    "text",
    [
        r'{"p\u0061ssword": "hunter2"}',
        r'{"\u0054\u006Fken":"hunter2"}',
        r'bad JSON {"api\u005fkey": "hunter2"',
        r"4242\u003424242424242",
    ],
)
def test_escapes_of_json_hide_nothing(text: str) -> None:
    assert masked(text) != text
    assert "hunter2" not in masked(text)
    assert "hunter2" not in str(json_view(text))


@pytest.mark.parametrize("text", [r"caf\u00e9 and \u0041", r"C:\u0031", "4242424242424243", "1763887361123456"])
def test_other_escapes_and_numbers_stay(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "nothing to hide at 10:30",
        "2026-11-23 08:42:41 and 2026-11-23-084241, +49 30 1234567890",
        "job 4242424242424, id a4242424242424242b, 4242424242424242424242",
        "sk_live, ghp_short, AKIA, risk-of-something-that-is-long-enough",
        "4f9c1e2a-1111-4222-8333-444444444444",
        "author: me, authors=3, pinned: 4, spinning=5, option: 6, designer=7, resigned: 8, significant=9",
        "jobs of queue mail are late; see https://example.com/docs/hooks",
        "mail me@example.com about port :80",
        "basic authentication is off",
        "host=db user=me port=5432",
    ],
)
def test_harmless_text_is_shown(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize(
    "name",
    ["author", "pinned", "opinion", "options", "sign", "design", "user", "assignee", "email", "id", "amount"],
)
def test_harmless_names_are_left_alone(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN A-----" * 3_000,
        '"name":"password",' * 3_000,
        '"value":"' * 5_500,
        '"value":"x","name":"' * 2_500,
        "--password " * 5_000,
        "password '" * 5_000,
        "https://hooks." * 3_500,
        "https://a/webhook" * 3_000,
        "Bearer " * 7_500,
        "eyJaaaaa." * 5_500,
        "eyJ" * 16_500,
        "auth" * 12_500,
        "://a:" * 10_000,
        "a\"'" * 16_500,
        "\\" * 50_000,
        'password="' * 5_000,
        "a" * 50_000,
        "a-" * 25_000,
        "pass" * 12_500,
        "://" * 15_000,
        "4" * 50_000,
        "4 " * 25_000,
        "42-" * 15_000 + "a",
        "sk_live_" * 6_250,
        "xoxb-" * 10_000,
        r"\u0061" * 8_250,
    ],
    ids=lambda text: text[:20],
)
def test_hiding_takes_no_long_time_whatever_the_text(text: str) -> None:
    began = thread_time()

    masked(text)

    assert thread_time() - began < 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter2 host=db", f"password={MASK} host=db"),
        ('{"token": "abc def", "a": 1}', f'{{"token": {MASK}, "a": 1}}'),
        ("Authorization: Bearer abc.def", f"Authorization: {MASK}"),
        ("cannot reach postgres://me:secret@db/app", f"cannot reach postgres://me:{MASK}@db/app"),
        ("api_key => 'x y'", f"api_key => {MASK}"),
        ("nothing to hide at 10:30", "nothing to hide at 10:30"),
    ],
)
def test_secrets_in_free_text_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
