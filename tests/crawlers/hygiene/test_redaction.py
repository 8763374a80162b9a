import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlers.hygiene.redaction import redact

# Split, so that no secret scanner reports this file.
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SLACK = "xox" + "b-123456789012-abcdefGHIJKL"
KEY = (
    "-----BEGIN RSA "
    + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA "
    + "PRIVATE KEY-----"
)
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9"


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("Write to Jane.Doe+news@mail.example.org, please.", "Write to [EMAIL], please.", "email"),
        ("<a href='mailto:x_y@uni-bonn.de'>", "<a href='mailto:[EMAIL]'>", "email"),
        ("ÜBER@FIRMA.COM", "[EMAIL]", "email"),
        ("from 192.168.17.4.", "from [IPV4].", "ipv4"),
        ("http://203.0.113.70:8080/x", "http://[IPV4]:8080/x", "ipv4"),
        ("at 2001:db8:85a3::8a2e:370:7334, it", "at [IPV6], it", "ipv6"),
        ("[2001:0db8:0000:0000:0000:ff00:0042:8329]", "[[IPV6]]", "ipv6"),
        ("Call +49 228 73-0123 now", "Call [PHONE] now", "phone"),
        ("Call +1 (555) 123-4567.", "Call [PHONE].", "phone"),
        ("or (555) 123-4567 or", "or [PHONE] or", "phone"),
        ("or 555-123-4567", "or [PHONE]", "phone"),
        ("+4915112345678", "[PHONE]", "phone"),
        ("Tel: 0228 730123", "Tel: [PHONE]", "phone"),
        (f"key {AWS}!", "key [SECRET]!", "secret"),
        (f"'{GITHUB}'", "'[SECRET]'", "secret"),
        (f"token={SLACK}", "token=[SECRET]", "secret"),
        (f"Bearer {JWT}", "Bearer [SECRET]", "secret"),
        (f"a\n{KEY}\nb", "a\n[SECRET]\nb", "secret"),
        ('api_key = "q7Zp0xW3vL9sT2mK8dR4"', 'api_key = "[SECRET]"', "secret"),
        ("password: hT7-kQ2_zX9=wV4bN6", "password: [SECRET]", "secret"),
    ],
)
def test_personal_and_secret_data_are_replaced(text: str, expected: str, kind: str) -> None:
    assert redact(text) == (expected, {kind: 1})


@pytest.mark.parametrize(
    "text",
    [
        "version 10.12.13.14", "v10.20.30.40", "numpy==1.26.4.10", "Section 12.10.3.14",
        "1.2.3.4", "Chrome/120.0.60.99", "3.11.7", "OpenSSL 1.1.1w", "256.300.1.2", "1.2.3.45.6",
        "2024-03-01", "2024-03-01T12:30:45+00:00", "12:30:45", "01.02.2024", "1998-2004",
        "+0100", "20240301123045", "1,234,567", "10:20:30:40",
        "ISBN 978-3-16-148410-0", "ISBN 0-306-40615-2", "978 0 306 40615 7", "ISSN 2049-3630",
        "doi:10.1000/182.555", "arXiv:2403.01234", "3.14159265358979", "+1.2345678901",
        "+0.123456789", "1e+10", "-555-12", "x+12345678", "1234567890", "+10000000", "100-200-300",
        "$x@y$", "q @ k.transpose(0, 1)", "x@self.weight", "@property", "A@B.T", "q@k.view(3)",
        "std::vector<int>", "a[1::2]", "abc::def", "::", "x[::2]", "icon@2x.png", "face::dead",
        "user@localhost", "token: expected", "secret = input()", "token = tokenizer_class_name",
        "token = compute_token_from_request2(x)",
        "password = os.environ_password_variable", "auth=aaaaaaaaaaaaaaaaaaaa1",
        "the key AKIA was", "sk-learn", "11:22:33:44:55:66",
    ],
)  # fmt: skip
def test_what_looks_alike_is_left(text: str) -> None:
    for framed in (text, f"It is {text} here", f"({text})"):
        assert redact(framed) == (framed, {})


def test_each_kind_is_counted() -> None:
    text = f"a@b.org c@d.org 10.20.30.40 {AWS} +49 228 730123"
    assert redact(text) == (
        "[EMAIL] [EMAIL] [IPV4] [SECRET] [PHONE]",
        {"email": 2, "ipv4": 1, "phone": 1, "secret": 1},
    )


def test_a_key_that_never_ends_is_cut_to_the_end() -> None:
    text = KEY[: KEY.index("-----END")]
    assert redact(f"a {text}") == ("a [SECRET]", {"secret": 1})


@given(st.text(max_size=100))
def test_what_was_redacted_stays_as_it_is(text: str) -> None:
    once, _ = redact(text)
    assert redact(once) == (once, {})
