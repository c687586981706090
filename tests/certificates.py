# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests of TLS: an authority, and what it signs."""

import datetime
import ipaddress
import pathlib
import typing

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_A_DAY = datetime.timedelta(days=1)


class Pair(typing.NamedTuple):
    """Paths of a certificate and of its key."""

    certificate: str
    key: str


class Authority:
    """A certificate authority whose files are in a directory.

    ``ca_file`` is the path of its certificate.
    """

    def __init__(self, directory, name="Test authority"):
        self._directory = pathlib.Path(directory)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
            key_encipherment=False, data_encipherment=False, key_agreement=False,
            encipher_only=False, decipher_only=False)
        certificate = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True).add_extension(
            usage, critical=True).sign(self._key, hashes.SHA256())
        self.ca_file = str(self._directory / f"{name.replace(' ', '-')}.pem")
        pathlib.Path(self.ca_file).write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject, key):
        now = datetime.datetime.now(datetime.UTC)
        return x509.CertificateBuilder().subject_name(subject).issuer_name(
            self._name).public_key(key.public_key()).serial_number(
            x509.random_serial_number()).not_valid_before(now - _A_DAY).not_valid_after(
            now + _A_DAY)

    def issue(self, subject, *names, password=None):
        """Issue a certificate and return it as a :class:`Pair`.

        :param subject: str, its common name, and the name of its files
        :param names: str each, the DNS names and IP addresses that it is valid for
        :param password: bytes that encrypt the key; None for a key in clear text
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_named(subject), key).add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(each) for each in names]), critical=False)
        pair = Pair(*(str(self._directory / f"{subject}.{kind}") for kind in ("pem", "key")))
        pathlib.Path(pair.certificate).write_bytes(builder.sign(
            self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        pathlib.Path(pair.key).write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password) if password
            else serialization.NoEncryption()))
        return pair


def _named(name):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _general(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
