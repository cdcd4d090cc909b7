#!/usr/bin/env python3
"""Writes openssl.json: what OpenSSL says of the chains of chains.json, asked with the same authorities and at the same time. Usage: openssl.py < chains.json > openssl.json

Only cards with one signature whose x5c are certificates are asked about. Any certificate of the bundle may be the end of a chain (-partial_chain), as in SPIFFE."""
import base64, json, pathlib, re, subprocess, sys, tempfile


def pem(der):
    return "-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der).decode() + "-----END CERTIFICATE-----\n"


def chain(card):
    try:
        [entry] = json.loads(card)["signatures"]
        text = entry["protected"]
        header = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
        return [base64.b64decode(c, validate=True) for c in header["x5c"]] or None
    except Exception:
        return None


def authorities(bundle):
    if "-----BEGIN CERTIFICATE-----" in bundle:
        blocks = re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", bundle, re.S)
        readable = lambda block: subprocess.run(["openssl", "x509", "-noout"], input=block, capture_output=True, text=True).returncode == 0
        return "\n".join(filter(readable, blocks))
    try:
        document = json.loads(bundle)
        sets = [document] if "keys" in document else list(document.values())
        return "".join(pem(base64.b64decode(c)) for s in sets for k in s["keys"] if k.get("use") != "jwt-svid" for c in k.get("x5c", []))
    except Exception:
        return ""


def main():
    version = subprocess.run(["openssl", "version"], capture_output=True, text=True, check=True).stdout.split(" ")
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        for case in json.load(sys.stdin)["cases"]:
            certificates, trusted = chain(case["card"]), authorities(case["bundle"])
            if not certificates or not trusted:
                continue
            (at / "root").write_text(trusted)
            (at / "leaf").write_text(pem(certificates[0]))
            (at / "others").write_text("".join(map(pem, certificates[1:])))
            command = ["openssl", "verify", "-no-CApath", "-no-CAstore", "-partial_chain", "-attime", str(case["now"]), "-CAfile", str(at / "root")]
            command += ["-untrusted", str(at / "others")] * (len(certificates) > 1) + [str(at / "leaf")]
            done = subprocess.run(command, capture_output=True, text=True)
            lines = [line for line in done.stderr.splitlines() if line.startswith("error ")]
            says = "ok" if done.returncode == 0 else lines[0].split(": ", 1)[1] if lines else "unreadable"
            cases.append({"name": case["name"], "says": says})
    json.dump({"generator": f"openssl.py, OpenSSL {version[1]}", "cases": cases}, sys.stdout, indent=1)
    print()


main()
