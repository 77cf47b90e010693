# SPDX-License-Identifier: Apache-2.0
"""Where the server is and what lets us in: the argument, SILT_URL and SILT_TOKEN, what `silt login` stored, the files of
a server on this machine."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from .errors import ContainerUnavailableError


@dataclass(frozen=True)
class Place:
    """A server. `url` is http://…, https://… or unix:/path."""
    url: str
    token: str | None = field(repr=False, default=None)
    #: file with the certificate authority of an https server
    ca: str | None = None


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _stored() -> dict[str, Any]:
    """The context that `silt context use` chose."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    try:
        whole = json.loads(_text(os.path.join(base, "silt", "contexts.json")) or "{}")
        name = os.environ.get("SILT_CONTEXT") or whole.get("current")
        context = whole.get("contexts", {}).get(name, {})
        return context if isinstance(context, dict) else {}
    except (ValueError, AttributeError):
        return {}


def _whole(url: str) -> str:
    if url.startswith("/"):
        url = "unix:" + url
    if not url.startswith(("http://", "https://", "unix:")):
        url = "http://" + url
    return url.rstrip("/")


def find(url: str | None = None, token: str | None = None) -> Place:
    """Finds the server."""
    token = token or os.environ.get("SILT_TOKEN")
    url = url or os.environ.get("SILT_URL") or os.environ.get("SILT_SERVER")
    if url:
        return Place(_whole(url), token or _text("/etc/silt/token"), os.environ.get("SILT_CA"))
    stored = _stored()
    if stored.get("url"):
        return Place(_whole(str(stored["url"])), token or stored.get("token"), stored.get("ca"))
    address = _text("/run/silt/address")
    if not address:
        raise ContainerUnavailableError("no Silt server is known", code="CONTAINER_UNAVAILABLE", status=503,
                                        hint="pass url, or set SILT_URL and SILT_TOKEN")
    return Place(_whole(address), token or _text("/etc/silt/token"))
