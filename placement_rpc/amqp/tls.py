# SPDX-License-Identifier: Apache-2.0
"""TLS to RabbitMQ: what is checked, and what its errors mean.

The handshake is that of oslo.messaging's driver with the same options, except that the broker's
certificate and its name are always verified. The driver verifies no name without ``ssl_ca_file``,
nothing at all if ``ssl_version`` is set without it, and the name of the first node only when it
fails over to another one.
"""

import dataclasses
import ssl
from typing import Any, NamedTuple, Self

from kombu import exceptions as kombu_exceptions
from oslo_config import cfg

from placement_rpc.amqp import options as rabbit_options

_VERSIONS = {"": None, "sslv23": None, "tlsv1": ssl.TLSVersion.TLSv1,
             "tlsv1_1": ssl.TLSVersion.TLSv1_1, "tlsv1_2": ssl.TLSVersion.TLSv1_2}
# Of OpenSSL: X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
_WRONG_NAME = (62, 64)
_OTHER_NAME = ("use a name of the certificate in transport_url, issue a certificate that has this "
               "one, or set [broker] check_hostname = false")


class Problem(NamedTuple):
    """What is wrong with a handshake, and its remedy."""

    trouble: str
    remedy: str


class HandshakeFailed(kombu_exceptions.OperationalError):
    """TLS with a broker failed; another attempt will fail too.

    :param node: host and port of the broker
    """

    def __init__(self, node: str, problem: Problem) -> None:
        super().__init__(f"TLS with {node} failed: {problem.trouble}; {problem.remedy}")
        self.problem = problem


@dataclasses.dataclass(frozen=True, slots=True)
class Tls:
    """The settings of TLS; paths of files are None where there is none."""

    ca_file: str | None = None
    certificate: str | None = None
    key: str | None = None
    version: ssl.TLSVersion | None = None
    checks_names: bool = True

    @classmethod
    def of(cls, options: cfg.ConfigOpts.GroupAttr, check_hostname: bool = True) -> Self | None:
        """Return the settings in ``[oslo_messaging_rabbit]``; None if TLS is off.

        :param check_hostname: ``[broker] check_hostname``
        :raises InvalidInput: for a version that there is not, and for files that cannot be used
        """
        if not options.ssl:
            return None
        if options.ssl_version.lower() not in _VERSIONS:
            raise rabbit_options.refusal(
                "ssl_version", f"{options.ssl_version} is not supported; there are TLSv1, "
                "TLSv1_1, TLSv1_2, and SSLv23 for the newest version that both ends have")
        found = cls(
            options.ssl_ca_file or None, options.ssl_cert_file or None,
            options.ssl_key_file or None, _VERSIONS[options.ssl_version.lower()],
            check_hostname and options.ssl_enforce_hostname_verification)
        found._load()
        return found

    def _load(self):
        """Check the files at the start; each connection reads them again."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.key and not self.certificate:
            raise rabbit_options.refusal("ssl_key_file", "ssl_cert_file is not set")
        try:
            if self.ca_file:
                context.load_verify_locations(self.ca_file)
        except OSError as error:
            raise rabbit_options.refusal("ssl_ca_file", f"{self.ca_file}: {error}") from None
        try:
            if self.certificate:
                # Without a password, OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except OSError as error:
            raise rabbit_options.refusal(
                "ssl_cert_file", f"{self.certificate}, with the key in "
                f"{self.key or self.certificate}, cannot be used: {error}") from None

    def parameters(self, host: str) -> dict[str, Any]:
        """Return what py-amqp takes as ``ssl``.

        :param host: the name or the address that the certificate has to have
        """
        chosen = {
            "cert_reqs": ssl.CERT_REQUIRED, "ca_certs": self.ca_file,
            "certfile": self.certificate, "keyfile": self.key,
            "tls_minimum_version": self.version, "tls_maximum_version": self.version,
            # None switches the check of the name off.
            "server_hostname": host if self.checks_names else None}
        return {name: value for name, value in chosen.items() if value is not None}


def explained(error: BaseException, node: str) -> HandshakeFailed | None:
    """Return an error that says what is wrong with a handshake; None if TLS did not fail.

    :param error: of an attempt to connect
    :param node: host and port of the broker
    """
    cause = error if isinstance(error, ssl.SSLError) else error.__cause__
    if not isinstance(cause, ssl.SSLError):
        return None
    return HandshakeFailed(node, _problem(cause))


def _problem(error):
    if has_wrong_name(error):
        return Problem(error.verify_message.rstrip("."), _OTHER_NAME)
    if isinstance(error, ssl.SSLCertVerificationError):
        return Problem(
            f"the broker's certificate is not trusted: {error.verify_message}",
            "set [oslo_messaging_rabbit] ssl_ca_file to the authority that signed it")
    return Problem(
        error.reason or str(error),
        "the port may be one without TLS, or the two ends have no version in common, or the "
        "broker requires a certificate of the client that it trusts (ssl_cert_file)")


def has_wrong_name(error: BaseException | None) -> bool:
    """Return whether a certificate was refused for its names only."""
    return isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _WRONG_NAME


def wrong_name(host: str, certificate: dict[str, Any]) -> Problem:
    """Return the problem of a certificate that is not valid for a host.

    :param certificate: as :meth:`ssl.SSLSocket.getpeercert` returns it
    """
    names = [value for kind, value in certificate.get("subjectAltName", ())
             if kind in ("DNS", "IP Address")]
    return Problem(f"the certificate is valid for {', '.join(names) or 'no name'}, and not for "
                   f"{host}", _OTHER_NAME)
