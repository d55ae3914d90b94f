"""Environment of the programs that Holdfast starts: an allowlist of names, and never Holdfast's own secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from holdfast.errors import BadInput

EXTRA_NAMES = "HOLDFAST_PASS_ENV"
OWN_PREFIXES = ("HOLDFAST_", "MCP_SESSION_SECRET", "MCP_RECONNECT_TOKEN_EXPIRY")
"""Prefixes of Holdfast's own settings; no program gets them, even if HOLDFAST_PASS_ENV names them."""

_COMMON = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR"),
        *("TMPDIR", "TMP", "TEMP", "PWD", "CI", "__CF_USER_TEXT_ENCODING"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        # Locations of toolchains and version managers.
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONUTF8", "UV_CACHE_DIR", "PIPX_HOME", "POETRY_HOME"),
        *("NVM_DIR", "NVM_BIN", "NODE_ENV", "NODE_PATH", "VOLTA_HOME", "FNM_DIR", "FNM_MULTISHELL_PATH"),
        *("PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "COREPACK_HOME", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR"),
        *("JAVA_HOME", "JDK_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "ANDROID_HOME"),
        *("ANDROID_SDK_ROOT", "SDKMAN_DIR", "KOTLIN_HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"),
        *("GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOTOOLCHAIN", "DOTNET_ROOT", "RBENV_ROOT"),
        *(
            "GEM_HOME",
            "GEM_PATH",
            "BUNDLE_PATH",
            "COMPOSER_HOME",
            "OPAMROOT",
            "STACK_ROOT",
            "GHCUP_INSTALL_BASE_PREFIX",
        ),
        *("MIX_HOME", "HEX_HOME", "FLUTTER_ROOT", "PUB_CACHE", "DEVELOPER_DIR", "SDKROOT", "HOMEBREW_PREFIX"),
        *("HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY", "NIX_PATH", "NIX_PROFILES", "NIX_SSL_CERT_FILE"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CC", "CXX"),
    )
)
_COMMON_PREFIXES = ("LC_", "XDG_")

_AGENTS = frozenset(("SSH_AUTH_SOCK", "GIT_CONFIG_GLOBAL", "GIT_SSH_COMMAND", "DO_NOT_TRACK", "EDITOR", "VISUAL"))
_AGENTS_OWN = (
    *("HOLDFAST_HOME", "HOLDFAST_TOOLSETS", "HOLDFAST_DAEMON_WAIT", "HOLDFAST_HOOK_TIMEOUT", "HOLDFAST_BRIEFING"),
)
"""Variables that the relay and the hooks inside an agent use; none is a secret."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")


def command_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a gate's command, git or Serena."""
    return _chosen(os.environ if env is None else env, _COMMON, _COMMON_PREFIXES)


def agent_environment(
    env: Mapping[str, str] | None = None, names: frozenset[str] = frozenset(), prefixes: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return the environment for a managed agent, before its team's own variables are added.

    `names` and `prefixes` are of variables that this agent alone reads.
    """
    env = os.environ if env is None else env
    own = {name: env[name] for name in _AGENTS_OWN if name in env}
    return own | _chosen(env, _COMMON | _AGENTS | names, (*_COMMON_PREFIXES, *prefixes))


def without_own(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` without Holdfast's own settings, for a program that the user's own configuration names."""
    return {name: value for name, value in env.items() if not name.startswith(OWN_PREFIXES)}


def passed_names(env: Mapping[str, str]) -> frozenset[str]:
    """Return the names in HOLDFAST_PASS_ENV; raises BadInput if one cannot be passed on."""
    names = frozenset(filter(None, (name.strip() for name in env.get(EXTRA_NAMES, "").split(","))))
    for name in sorted(names):
        if not _NAME.fullmatch(name):
            raise BadInput(EXTRA_NAMES, f"holds {name[:40]!r}, which is not a variable name")
        if name.startswith(OWN_PREFIXES):
            raise BadInput(EXTRA_NAMES, f"names {name}, which is a Holdfast setting and never passed on")
    return names


def _chosen(env: Mapping[str, str], names: frozenset[str], prefixes: tuple[str, ...]) -> dict[str, str]:
    names |= passed_names(env)
    return {
        name: value
        for name, value in env.items()
        if (name in names or name.startswith(prefixes)) and not name.startswith(OWN_PREFIXES)
    }
