#!/usr/bin/env python3
"""Writes chains.json: signed cards, good and hostile, made by the Python package `cryptography` and judged by nobody here. Usage: chains.py > chains.json"""
import base64, datetime, ipaddress, json, sys
import cryptography
from cryptography import x509
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.x509.oid import NameOID, ObjectIdentifier

NOW = 1_800_000_000
H = 3600
CARD = json.loads('{"name":"Weather Agent","description":"Forecasts & alerts","url":"http://weather-agent.team1.svc.cluster.local:8000","version":"1.0.0","protocolVersion":"0.3.0","preferredTransport":"JSONRPC","iconUrl":"","capabilities":{"streaming":false,"extensions":[]},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"get_weather","name":"get_weather","description":"","tags":["weather"],"examples":[]}]}')
PAYLOAD = rb'{"capabilities":{"streaming":false},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"description":"Forecasts \u0026 alerts","name":"Weather Agent","skills":[{"id":"get_weather","name":"get_weather","tags":["weather"]}],"url":"http://weather-agent.team1.svc.cluster.local:8000","version":"1.0.0"}'
ID = "spiffe://example.org/ns/team1/sa/weather"
RSA = rsa.generate_private_key(65537, 2048)


def when(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def u(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Cert:
    def __init__(self, key, cert):
        self.key, self.cert = key, cert
        self.der = cert.public_bytes(serialization.Encoding.DER)
        self.b64 = base64.b64encode(self.der).decode()
        self.pem = cert.public_bytes(serialization.Encoding.PEM).decode()


def usage(**on):
    names = "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign encipher_only decipher_only".split()
    return x509.KeyUsage(**{n: on.get(n, False) for n in names})


def make(subject, issuer=None, key=None, ca=False, length=None, start=NOW - 12 * H, end=NOW + 12 * H, uris=(), ku=None, ids=True, extra=(), sans=(), algorithm=hashes.SHA256()):
    key = key or ec.generate_private_key(ec.SECP256R1())
    signer = issuer.key if issuer else key
    b = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(issuer.cert.subject if issuer else name(subject))
    b = b.public_key(key.public_key()).serial_number(x509.random_serial_number()).not_valid_before(when(start)).not_valid_after(when(end))
    if ca is not None:
        b = b.add_extension(x509.BasicConstraints(ca, length), True)
    if ku is not False:
        b = b.add_extension(ku or (usage(key_cert_sign=True, crl_sign=True) if ca else usage(digital_signature=True)), True)
    names = [x509.UniformResourceIdentifier(uri) for uri in uris] + list(sans)
    if names:
        b = b.add_extension(x509.SubjectAlternativeName(names), False)
    if ids:
        b = b.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        if issuer:
            b = b.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False)
    for extension, critical in extra:
        b = b.add_extension(extension, critical)
    return Cert(key, b.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else algorithm))


HASH = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}


def raw(alg, key, data, salt=None, der=False):
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    digest = HASH.get(alg[2:], hashes.SHA256)()
    if isinstance(key, rsa.RSAPrivateKey):
        pad = padding.PSS(padding.MGF1(digest), digest.digest_size if salt is None else salt) if alg.startswith("PS") else padding.PKCS1v15()
        return key.sign(data, pad, digest)
    signature = key.sign(data, ec.ECDSA(digest))
    if der:
        return signature
    r, s = utils.decode_dss_signature(signature)
    size = (key.curve.key_size + 7) // 8
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def entry(chain, alg="ES256", key=None, header=None, text=None, payload=PAYLOAD, **options):
    """An entry by the first certificate of `chain`; `text` is the header, word for word."""
    fields = {"alg": alg, "typ": "JOSE", "x5c": [c.b64 for c in chain]}
    fields.update(header or {})
    protected = u((text or json.dumps({k: v for k, v in fields.items() if v is not None}, separators=(",", ":"))).encode())
    return {"protected": protected, "signature": u(raw(alg, key or chain[0].key, (protected + "." + u(payload)).encode(), **options))}


CASES = []


def case(title, expected, entries, bundle, configured="example.org", now=NOW, tolerance=86400, card=None):
    document = dict(CARD if card is None else card)
    document["signatures"] = entries
    expected = [expected] if isinstance(expected, str) else expected
    CASES.append({"name": title, "expected": expected, "card": json.dumps(document), "bundle": bundle, "configured": configured, "now": now, "tolerance": tolerance})


root = make("root", ca=True, uris=["spiffe://example.org"])
leaf = make("leaf", root, uris=[ID])
good = entry([leaf])
rsa_leaf = make("rsa", root, RSA, uris=[ID])
curves = {"ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
ec_leaf = {alg: make(alg, root, ec.generate_private_key(curve), uris=[ID]) for alg, curve in curves.items()}
OK = "Verified"

case("80 ES256", OK, [good], root.pem)
for alg in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]:
    case("80 " + alg, OK, [entry([rsa_leaf], alg)], root.pem)
for alg in curves:
    case("80 " + alg, OK, [entry([ec_leaf[alg]], alg)], root.pem)
case("81 alg absent", "AlgorithmMissing", [entry([leaf], header={"alg": None})], root.pem)
for value in ["", "none", "None", "nOnE", "HS256", "EdDSA", "ES256K", "rs256", "es256", ["ES256"], 256, {"alg": "ES256"}, "ES256 ", "RS1", "A128KW"]:
    case("81 alg %s" % json.dumps(value), "AlgorithmNotAllowed", [entry([leaf], header={"alg": value})], root.pem)
case("81 alg null", "AlgorithmNotAllowed", [entry([leaf], text=json.dumps({"alg": None, "x5c": [leaf.b64]}))], root.pem)
case("82 ES256 with an RSA leaf", "KeyMismatch", [entry([rsa_leaf], "ES256", key=leaf.key)], root.pem)
case("82 RS256 with an EC leaf", "KeyMismatch", [entry([leaf], "RS256", key=RSA)], root.pem)
case("82 PS256 with an EC leaf", "KeyMismatch", [entry([leaf], "PS256", key=RSA)], root.pem)
case("82 PKCS#1 signature under PS256", "SignatureWrong", [dict(entry([rsa_leaf], "PS256"), signature=entry([rsa_leaf], "RS256")["signature"])], root.pem)
case("83 ES256 with a P-384 leaf", "KeyMismatch", [entry([ec_leaf["ES384"]], "ES256", key=leaf.key)], root.pem)
case("83 ES384 with a P-256 leaf", "KeyMismatch", [entry([leaf], "ES384", key=ec_leaf["ES384"].key)], root.pem)
small = make("small", root, rsa.generate_private_key(65537, 1024), uris=[ID])
case("84 RSA of 1024 bits", "KeyNotAllowed", [entry([small], "RS256")], root.pem)
three = make("three", root, rsa.generate_private_key(3, 2048), uris=[ID])
case("84 RSA with exponent 3", "KeyNotAllowed", [entry([three], "RS256")], root.pem)
for curve in [ec.SECP224R1(), ec.SECP256K1()]:
    other = make(curve.name, root, ec.generate_private_key(curve), uris=[ID])
    case("84 key on " + curve.name, "KeyNotAllowed", [entry([other], "ES256", key=leaf.key)], root.pem)
edwards = make("ed", root, ed25519.Ed25519PrivateKey.generate(), uris=[ID])
case("84 Ed25519 key", "KeyNotAllowed", [entry([edwards], "ES256", key=leaf.key)], root.pem)
case("85 PSS without salt", "SignatureWrong", [entry([rsa_leaf], "PS256", salt=0)], root.pem)
case("85 PSS with the longest salt", "SignatureWrong", [entry([rsa_leaf], "PS256", salt=222)], root.pem)
case("85 PSS with a salt of 48 under PS256", "SignatureWrong", [entry([rsa_leaf], "PS256", salt=48)], root.pem)
bytes64 = base64.urlsafe_b64decode(good["signature"] + "==")
for what, signature in [("63 bytes", bytes64[:-1]), ("65 bytes", bytes64 + b"\0"), ("no bytes", b""), ("2000 bytes", bytes(2000))]:
    case("86 signature of " + what, "SignatureMalformed", [dict(good, signature=u(signature))], root.pem)
case("86 r and s are 0", "SignatureWrong", [dict(good, signature=u(bytes(64)))], root.pem)
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
case("86 r is the order", "SignatureWrong", [dict(good, signature=u(ORDER.to_bytes(32, "big") + bytes64[32:]))], root.pem)
case("87 signature in DER", "SignatureMalformed", [entry([leaf], der=True)], root.pem)
case("88 one bit of the signature", "SignatureWrong", [dict(good, signature=u(bytes([bytes64[0] ^ 1]) + bytes64[1:]))], root.pem)
case("88 one character of the card", "SignatureWrong", [good], root.pem, card=dict(CARD, description="Forecast & alerts"))
case("88 one character of protected", "SignatureWrong", [dict(good, protected=u(base64.urlsafe_b64decode(good["protected"] + "==").replace(b"JOSE", b"JOSF")))], root.pem)
case("88 an uncovered member", OK, [good], root.pem, card=dict(CARD, protocolVersion="9"))
case("89 padded signature", "SignatureMalformed", [dict(good, signature=good["signature"] + "==")], root.pem)
case("89 standard alphabet", "SignatureMalformed", [dict(good, signature="+/" + good["signature"][2:])], root.pem)
case("89 line break in the signature", "SignatureMalformed", [dict(good, signature=good["signature"][:40] + "\r\n" + good["signature"][40:])], root.pem)
case("89 trailing bits", "SignatureMalformed", [dict(good, signature=good["signature"][:-1] + chr(ord(good["signature"][-1]) + 1))], root.pem)
case("89 padded protected", "HeaderMalformed", [dict(good, protected=good["protected"] + "=")], root.pem)
x5c = '"x5c":["%s"]' % leaf.b64
case("90 crit", "CriticalHeader", [entry([leaf], header={"crit": ["x"], "x": 1})], root.pem)
case("90 crit b64", "CriticalHeader", [entry([leaf], header={"crit": ["b64"], "b64": False})], root.pem)
case("90 crit empty", "CriticalHeader", [entry([leaf], header={"crit": []})], root.pem)
case("90 b64 false", "UnencodedPayload", [entry([leaf], header={"b64": False})], root.pem)
case("90 b64 as text", "UnencodedPayload", [entry([leaf], header={"b64": "true"})], root.pem)
case("90 alg twice", "HeaderMalformed", [entry([leaf], text='{"alg":"none","alg":"ES256",%s}' % x5c)], root.pem)
case("90 alg twice by an escape", "HeaderMalformed", [entry([leaf], text='{"alg":"ES256","\\u0061lg":"ES256",%s}' % x5c)], root.pem)
case("90 x5c twice", "HeaderMalformed", [entry([leaf], text='{"alg":"ES256",%s,%s}' % (x5c, x5c))], root.pem)
case("90 ALG", "AlgorithmMissing", [entry([leaf], text='{"ALG":"ES256",%s}' % x5c)], root.pem)
case("90 header is a list", "HeaderMalformed", [entry([leaf], text='["ES256"]')], root.pem)
case("90 header is empty", "HeaderMalformed", [dict(good, protected="")], root.pem)
case("90 something after the header", "HeaderMalformed", [entry([leaf], text='{"alg":"ES256",%s}x' % x5c)], root.pem)
case("90 kid is a number", "HeaderMalformed", [entry([leaf], header={"kid": 1})], root.pem)
case("90 kid of 300 bytes", "HeaderMalformed", [entry([leaf], header={"kid": "k" * 300})], root.pem)
case("90 header of 70000 bytes", "HeaderTooLarge", [entry([leaf], header={"pad": "k" * 70000})], root.pem)
case("90 alg in both headers", "HeaderOverlap", [dict(good, header={"alg": "ES256"})], root.pem)
case("90 crit in the open header", "HeaderOverlap", [dict(good, header={"crit": ["x"]})], root.pem)
case("90 open header is text", "EntryMalformed", [dict(good, header="x")], root.pem)
case("90 a harmless open header", OK, [dict(good, header={"timestamp": "x"})], root.pem)
stranger = make("stranger", ca=True, uris=["spiffe://example.org"])
thief = make("thief", stranger, uris=[ID])
n = thief.key.public_key().public_numbers()
jwk = {"kty": "EC", "crv": "P-256", "x": u(n.x.to_bytes(32, "big")), "y": u(n.y.to_bytes(32, "big"))}
for header in [{"jwk": jwk}, {"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example/chain"}, {"kid": "../../etc/passwd"}]:
    word = next(iter(header))
    case("91 %s and no x5c" % word, "NoTrustAnchor", [entry([thief], header={"x5c": None, **header})], root.pem)
    case("91 %s beside another's x5c" % word, "SignatureWrong", [entry([leaf], key=thief.key, header=header)], root.pem)
    case("91 %s beside a good x5c" % word, OK, [entry([leaf], header=header)], root.pem)
mac = hmac.HMAC(leaf.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo), hashes.SHA256())
protected = u(json.dumps({"alg": "HS256", "x5c": [leaf.b64]}).encode())
mac.update((protected + "." + u(PAYLOAD)).encode())
case("92 HMAC with the leaf's public key", "AlgorithmNotAllowed", [{"protected": protected, "signature": u(mac.finalize())}], root.pem)

case("93 a good signature", OK, [good], root.pem)
case("94 no signatures", "NoSignatures", [], root.pem)
case("94 no x5c", "NoTrustAnchor", [entry([leaf], header={"x5c": None})], root.pem)
case("94 empty x5c", "NoTrustAnchor", [entry([leaf], header={"x5c": []})], root.pem)
case("94 x5c is text", "ChainMalformed", [entry([leaf], header={"x5c": leaf.b64})], root.pem)
case("94 entry is text", "EntryMalformed", ["x"], root.pem)
case("94 entry without signature", "EntryMalformed", [{"protected": good["protected"]}], root.pem)
case("94 17 signatures", "TooManySignatures", [good] * 17, root.pem)
case("94 16 signatures", OK, [good] * 16, root.pem)
case("95 unknown authority", "AuthorityUnknown", [entry([thief])], root.pem)
twin = make("root", ca=True, uris=["spiffe://example.org"], ids=False)
case("95 authority of the same name", "AuthorityUnknown", [entry([make("leaf", twin, uris=[ID], ids=False)])], root.pem)
case("95 unknown authority, its root sent along", "AuthorityUnknown", [entry([thief, stranger])], root.pem)
upper = make("upper", root, ca=True)
lower = make("lower", upper, ca=True)
deep = make("deep", lower, uris=[ID])
case("96 two intermediates", OK, [entry([deep, lower, upper])], root.pem)
case("96 two intermediates in wrong order", OK, [entry([deep, upper, lower])], root.pem)
case("96 the root sent along", OK, [entry([leaf, root])], root.pem)
case("96 a missing intermediate", "AuthorityUnknown", [entry([deep, lower])], root.pem)
case("96 three others", "ChainTooLong", [entry([deep, lower, upper, root])], root.pem)
case("96 the leaf four times", "ChainTooLong", [entry([leaf] * 4)], root.pem)
case("96 100 certificates", "ChainTooLong", [entry([leaf] * 40)], root.pem)
case("96 the leaf three times", OK, [entry([leaf] * 3)], root.pem)
loop_key = ec.generate_private_key(ec.SECP256R1())
one = make("one", ca=True, key=loop_key)
two = make("two", one, ca=True)
one = make("one", two, ca=True, key=loop_key)
case("96 issuers in a circle", "AuthorityUnknown", [entry([make("leaf", one, uris=[ID]), one, two])], root.pem)
no_ca = make("middle", root, ca=False, ku=usage(key_cert_sign=True))
case("97 issuer without CA", "IntermediateNotAuthority", [entry([make("leaf", no_ca, uris=[ID]), no_ca])], root.pem)
no_bc = make("middle", root, ca=None, ku=usage(key_cert_sign=True))
case("97 issuer without basicConstraints", "IntermediateNotAuthority", [entry([make("leaf", no_bc, uris=[ID]), no_bc])], root.pem)
no_sign = make("middle", root, ca=True, ku=usage(digital_signature=True))
case("97 issuer without keyCertSign", "IntermediateNotAuthority", [entry([make("leaf", no_sign, uris=[ID]), no_sign])], root.pem)
workload = make("leaf", root, uris=["spiffe://example.org/ns/evil/sa/evil"])
case("97 a workload issues another", "IntermediateNotAuthority", [entry([make("victim", workload, uris=[ID]), workload])], root.pem)
short = make("short", root, ca=True, length=0)
below = make("below", short, ca=True)
case("97 path length 0, none below", OK, [entry([make("leaf", short, uris=[ID]), short])], root.pem)
case("97 path length 0, one below", "PathTooLong", [entry([make("leaf", below, uris=[ID]), below, short])], root.pem)
tight = make("tight", ca=True, length=0, uris=["spiffe://example.org"])
under = make("under", tight, ca=True)
case("97 path length of the root", "PathTooLong", [entry([make("leaf", under, uris=[ID]), under])], tight.pem)


def bound(title, expected, permitted=None, excluded=None, critical=True, sans=(), at_root=False):
    rule = x509.NameConstraints(permitted, excluded)
    top = make("bound", None if at_root else root, ca=True, extra=[(rule, critical)])
    chain = [make("leaf", top, uris=[ID], sans=sans)] + ([] if at_root else [top])
    case("97 " + title, expected, [entry(chain)], top.pem if at_root else root.pem)


def uri(text):
    return [x509.UniformResourceIdentifier(text)]


def dns(text):
    return [x509.DNSName(text)]


bound("URI permitted", OK, uri("example.org"))
bound("URI permitted elsewhere", "NameConstraint", uri("other.org"))
bound("URI permitted elsewhere, not critical", "NameConstraint", uri("other.org"), critical=False)
bound("URI permitted below", "NameConstraint", uri(".example.org"))
bound("URI excluded", "NameConstraint", None, uri("example.org"))
bound("URI excluded elsewhere", OK, None, uri("other.org"))
bound("URI excluded by the root", "NameConstraint", None, uri("example.org"), at_root=True)
bound("URI permitted by the root", OK, uri("example.org"), at_root=True)
bound("DNS permitted, no DNS name", OK, dns("example.org"))
bound("DNS permitted and given", OK, dns("example.org"), sans=dns("a.example.org"))
bound("DNS permitted elsewhere", "NameConstraint", dns("other.org"), sans=dns("a.example.org"))
bound("DNS like", "NameConstraint", dns("example.org"), sans=dns("evilexample.org"))
bound("DNS wildcard", "NameConstraint", None, dns("a.example.org"), sans=dns("*.example.org"))
bound("IP excluded", "NameConstraint", None, [x509.IPAddress(ipaddress.ip_network("10.0.0.0/8"))], sans=[x509.IPAddress(ipaddress.ip_address("10.1.2.3"))])
bound("IP excluded elsewhere", OK, None, [x509.IPAddress(ipaddress.ip_network("10.0.0.0/8"))], sans=[x509.IPAddress(ipaddress.ip_address("11.1.2.3"))])
bound("directory name", "NameConstraint", [x509.DirectoryName(name("leaf"))])
mystery = x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.99999.1"), b"\x05\x00")
case("97 unknown critical extension in the leaf", "CriticalExtension", [entry([make("leaf", root, uris=[ID], extra=[(mystery, True)])])], root.pem)
case("97 unknown extension in the leaf", OK, [entry([make("leaf", root, uris=[ID], extra=[(mystery, False)])])], root.pem)
odd = make("odd", root, ca=True, extra=[(mystery, True)])
case("97 unknown critical extension in an issuer", "CriticalExtension", [entry([make("leaf", odd, uris=[ID]), odd])], root.pem)
for title, uris, expected in [
    ("98 no URI", [], "SpiffeIdMissing"),
    ("98 only https", ["https://example.org/x"], "SpiffeIdInvalid(Scheme)"),
    ("98 two SPIFFE URIs", [ID, "spiffe://example.org/other"], "SpiffeIdAmbiguous"),
    ("98 no trust domain", ["spiffe:///x"], "SpiffeIdInvalid(TrustDomain)"),
    ("99 SPIFFE and https", [ID, "https://example.org/x"], "SpiffeIdAmbiguous"),
    ("100 port", ["spiffe://example.org:8443/x"], "SpiffeIdInvalid(TrustDomain)"),
    ("100 user", ["spiffe://u@example.org/x"], "SpiffeIdInvalid(TrustDomain)"),
    ("100 query", ["spiffe://example.org/x?y=1"], "SpiffeIdInvalid(PathCharacter)"),
    ("100 fragment", ["spiffe://example.org/x#f"], "SpiffeIdInvalid(PathCharacter)"),
    ("100 dots", ["spiffe://example.org/../x"], "SpiffeIdInvalid(Segment)"),
    ("100 one dot", ["spiffe://example.org/./x"], "SpiffeIdInvalid(Segment)"),
    ("100 empty segment", ["spiffe://example.org//x"], "SpiffeIdInvalid(Segment)"),
    ("100 slash at the end", ["spiffe://example.org/x/"], "SpiffeIdInvalid(Segment)"),
    ("100 capitals in the host", ["spiffe://EXAMPLE.org/x"], "SpiffeIdInvalid(TrustDomain)"),
    ("100 capitals in the scheme", ["SPIFFE://example.org/x"], "SpiffeIdInvalid(Scheme)"),
    ("100 no path", ["spiffe://example.org"], "SpiffeIdInvalid(NoPath)"),
    ("100 escape", ["spiffe://example.org/a%2fb"], "SpiffeIdInvalid(PathCharacter)"),
    ("100 2049 bytes", ["spiffe://example.org/" + "a" * 2028], "SpiffeIdInvalid(TooLong)"),
    ("100 2048 bytes", ["spiffe://example.org/" + "a" * 2027], OK),
]:
    case(title, expected, [entry([make("leaf", root, uris=uris)])], root.pem)
case("98 the common name alone", "SpiffeIdMissing", [entry([make(ID, root)])], root.pem)
case("98 DNS and IP beside", OK, [entry([make("leaf", root, uris=[ID], sans=dns("a.b") + [x509.IPAddress(ipaddress.ip_address("10.0.0.1"))])])], root.pem)
case("101 the authority itself signs", "LeafIsAuthority", [entry([root])], root.pem)
case("101 leaf with CA", "LeafIsAuthority", [entry([make("leaf", root, ca=True, uris=[ID])])], root.pem)
case("101 leaf with keyCertSign", "LeafIsAuthority", [entry([make("leaf", root, uris=[ID], ku=usage(digital_signature=True, key_cert_sign=True))])], root.pem)
case("101 leaf with cRLSign", "LeafIsAuthority", [entry([make("leaf", root, uris=[ID], ku=usage(digital_signature=True, crl_sign=True))])], root.pem)
case("101 leaf without digitalSignature", "LeafKeyUsage", [entry([make("leaf", root, uris=[ID], ku=usage(key_agreement=True))])], root.pem)
case("101 leaf without keyUsage", OK, [entry([make("leaf", root, uris=[ID], ku=False)])], root.pem)
case("101 a leaf as its own bundle", "Empty", [entry([leaf])], leaf.pem)
lone = make("lone", uris=[ID])
case("101 a self-signed leaf", "AuthorityUnknown", [entry([lone])], root.pem)
past = make("leaf", root, uris=[ID], start=NOW - 3 * H, end=NOW - 2 * H)
case("102 expired within the tolerance", "VerifiedExpired", [entry([past])], root.pem)
case("102 expired, no tolerance", "Expired", [entry([past])], root.pem, tolerance=0)
case("102 expired, to the second within", "VerifiedExpired", [entry([past])], root.pem, tolerance=2 * H)
case("102 expired, to the second beyond", "Expired", [entry([past])], root.pem, tolerance=2 * H - 1)
case("102 valid to this second", OK, [entry([make("leaf", root, uris=[ID], end=NOW)])], root.pem, tolerance=0)
case("102 begins in 60 s", OK, [entry([make("leaf", root, uris=[ID], start=NOW + 60)])], root.pem)
case("102 begins in 61 s", "NotYetValid", [entry([make("leaf", root, uris=[ID], start=NOW + 61)])], root.pem)
middle = make("middle", root, ca=True, end=NOW - 2 * H - 1)
case("102 intermediate gone before the leaf", "IntermediateExpired", [entry([make("leaf", middle, uris=[ID], end=NOW - 2 * H), middle])], root.pem)
middle = make("middle", root, ca=True, end=NOW - 2 * H)
case("102 intermediate gone with the leaf", "VerifiedExpired", [entry([make("leaf", middle, uris=[ID], end=NOW - 2 * H), middle])], root.pem)
case("102 intermediate gone, leaf current", "IntermediateExpired", [entry([make("leaf", middle, uris=[ID]), middle])], root.pem)
old = make("old", ca=True, end=NOW - 1)
case("103 authority expired", "AuthorityExpired", [entry([make("leaf", old, uris=[ID])])], old.pem)
case("103 authority and leaf expired", "AuthorityExpired", [entry([make("leaf", old, uris=[ID], end=NOW - H)])], old.pem)
renewed = make("root", ca=True, key=root.key, start=NOW - 60, end=NOW + 99 * H)
case("103 authority renewed with its key", OK, [good], renewed.pem)
early = make("early", ca=True, start=NOW + 61)
case("103 authority not valid yet", "AuthorityNotYetValid", [entry([make("leaf", early, uris=[ID])])], early.pem)
case("104 unknown, good", OK, [entry([thief]), good], root.pem)
case("104 good, unknown", OK, [good, entry([thief])], root.pem)
wrong = dict(good, signature=u(bytes(63) + b"\1"))
case("104 wrong, good", OK, [wrong, good], root.pem)
case("104 no x5c, good", OK, [entry([leaf], header={"x5c": None}), good], root.pem)
case("104 rubbish, good", OK, [7, None, [], {}, {"protected": 1, "signature": 2}, good], root.pem)
case("104 all bad", ["AuthorityUnknown", "SignatureWrong", "EntryMalformed"], [entry([thief]), wrong, 7], root.pem)
special = next(c for c in (make("leaf", root, uris=[ID]) for _ in range(99)) if "+" in c.b64 or "/" in c.b64)
case("105 x5c in base64url", "ChainMalformed", [entry([special], header={"x5c": [base64.urlsafe_b64encode(special.der).decode()]})], root.pem)
unpadded = next(c for c in (make("leaf", root, uris=[ID]) for _ in range(99)) if c.b64.endswith("="))
case("105 x5c without padding", "ChainMalformed", [entry([unpadded], header={"x5c": [unpadded.b64.rstrip("=")]})], root.pem)
case("105 x5c with line breaks", "ChainMalformed", [entry([leaf], header={"x5c": [leaf.b64[:64] + "\n" + leaf.b64[64:]]})], root.pem)
case("105 something after the certificate", "ChainMalformed", [entry([leaf], header={"x5c": [base64.b64encode(leaf.der + b"\0").decode()]})], root.pem)
case("105 half a certificate", "ChainMalformed", [entry([leaf], header={"x5c": [base64.b64encode(leaf.der[:200]).decode()]})], root.pem)
case("105 a certificate of 20000 bytes", "ChainMalformed", [entry([leaf], header={"x5c": [base64.b64encode(bytes(20000)).decode()]})], root.pem)
case("105 a bad intermediate", "ChainMalformed", [entry([leaf], header={"x5c": [leaf.b64, "AAAA"]})], root.pem)

key_block = "-----BEGIN PRIVATE KEY-----\nbm8ga2V5\n-----END PRIVATE KEY-----\n"
second = make("second", ca=True, uris=["spiffe://example.org"])
jwt = {"use": "jwt-svid", "kid": "k", **jwk}


def svid(cert, **more):
    return {"use": "x509-svid", **jwk, "x5c": [cert.b64], **more}


def keys(*entries, **more):
    return json.dumps({"keys": list(entries), **more})


case("106 PEM with two certificates and a key", OK, [good], second.pem + key_block + root.pem)
case("106 PEM with rubbish between", OK, [good], "#\n" + second.pem.replace("MI", "!!", 1) + root.pem)
case("107 SPIFFE bundle", OK, [good], keys(jwt, svid(root), jwt, spiffe_sequence=1, spiffe_refresh_hint=300))
case("107 unknown use", "Empty", [good], keys(dict(svid(root), use="wit-svid")))
case("107 one bad certificate", "InvalidCertificate", [good], keys(svid(root), svid(root, x5c=["AAAA"])))
case("107 two certificates in one key", "InvalidCertificate", [good], keys(svid(root, x5c=[root.b64, second.b64])))
case("107 a workload as authority", "InvalidCertificate", [good], keys(svid(leaf)))
case("107 no base64", "InvalidBase64", [good], keys(svid(root, x5c=["*"])))
plain = svid(root)
del plain["use"]
case("108 JWKS without use", OK, [good], keys(plain, {k: v for k, v in jwt.items() if k != "use"}))
case("109 empty", "Empty", [good], "")
case("109 spaces", "Empty", [good], " \n")
case("109 no keys", "Empty", [good], '{"keys":[]}')
case("109 no JSON", "InvalidJson", [good], "hello")
case("109 another object", "NotAKeySet", [good], '{"a":1}')
case("109 a list", "NotAKeySet", [good], "[]")
case("111 the authority was replaced", "AuthorityUnknown", [good], second.pem)
case("111 the new authority", OK, [entry([make("leaf", second, uris=[ID])])], second.pem)
foreign = make("foreign", ca=True, uris=["spiffe://other.org"])
both = json.dumps({"example.org": {"keys": [svid(root)]}, "other.org": {"keys": [svid(foreign)]}})
case("113 two trust domains", OK, [good], both)
case("113 issued by the other's authority", "AuthorityOfOtherDomain", [entry([make("leaf", foreign, uris=[ID])])], both)
case("113 the other's own", OK, [entry([make("leaf", foreign, uris=["spiffe://other.org/x"])])], both)
case("113 a domain that is in no bundle", "AuthorityOfOtherDomain", [entry([make("leaf", root, uris=["spiffe://third.org/x"])])], both)
case("113 a map with a bad name", "InvalidTrustDomain", [good], json.dumps({"a b": {"keys": [svid(root)]}}))
case("113 no trust domain is configured, the certificates name it", OK, [good], root.pem, configured=None)
case("113 no trust domain is named", "TrustDomainUnknown", [good], make("anon", ca=True).pem, configured=None)
case("113 two are named", "TrustDomainUnknown", [good], root.pem + foreign.pem, configured=None)
case("113 the configured domain goes first", "AuthorityOfOtherDomain", [good], root.pem, configured="other.org")
many = [make("root", ca=True, ids=False) for _ in range(9)]
case("113 nine of one name, and no key identifier", "AuthorityAmbiguous", [entry([make("leaf", many[4], uris=[ID], ids=False)])], "".join(c.pem for c in many))
case("113 eight of one name, and no key identifier", OK, [entry([make("leaf", many[4], uris=[ID], ids=False)])], "".join(c.pem for c in many[:8]))
rsa_root = make("rsa root", ca=True, key=RSA, uris=["spiffe://example.org"])
for digest in [hashes.SHA256(), hashes.SHA384(), hashes.SHA512()]:
    case("95 RSA authority, " + digest.name, OK, [entry([make("leaf", rsa_root, uris=[ID], algorithm=digest)])], rsa_root.pem)
for curve in [ec.SECP384R1(), ec.SECP521R1()]:
    top = make(curve.name, ca=True, key=ec.generate_private_key(curve), algorithm=hashes.SHA512())
    case("95 authority on " + curve.name, OK, [entry([make("leaf", top, uris=[ID], algorithm=hashes.SHA384())])], top.pem)
top = make("ed", ca=True, key=ed25519.Ed25519PrivateKey.generate())
case("95 authority with Ed25519", "Empty", [entry([make("leaf", top, uris=[ID])])], top.pem)
json.dump({"generator": "chains.py, Python %s, cryptography %s" % (sys.version.split()[0], cryptography.__version__), "cases": CASES}, sys.stdout, indent=1)
print()
