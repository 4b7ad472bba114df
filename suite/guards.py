"""Says which commands Hermes may not just run: those it refuses, and those it asks a person about.

Hermes judges a command by its text, whatever the text does: it takes a search
for `uvicorn` for a server that would never end, and one for `DROP TABLE` for
the deed.  What is told here is wider than its rules, which change by version.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["held_up", "refused_folder"]

#: What Hermes takes for a server or a job in the background, outside quotes.
_LONG_LIVED = (
    r"(?i)\b(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:dev|start|serve|watch)\b|\bdocker\s+compose\s+up\b|\bnext\s+dev\b"
    r"|\bvite(?:\s|$)|\bnodemon\b|\buvicorn\b|\bgunicorn\b|\bpython3?\s+-m\s+http\.server\b"
    r"|(?:^|[;&|]\s*)(?:nohup|disown|setsid)\b|\s&(?:\s|$)"
)
_SHELLS = "(?:bash|sh|zsh|ksh|dash|iex|invoke-expression)"
_FETCHES = "(?:curl|wget|iwr|irm|invoke-)"
#: A secret file or a variable, as Hermes knows them.
_SECRETS = r"\$\{?\w*(?:key|token|secret|passw|credential)|\.env\b|/etc/|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|[~}e]/\."
#: Where a write is asked about.
_GUARDED = r"(?:/etc/|/private/|/dev/|~|\$|\S*\.env|\S*config\.yaml)"
#: What Hermes may take for a dangerous deed, also in quotes.
_DANGEROUS = "(?i)" + "|".join(
    (
        r"\b(?:rm|dd|chmod|chown|truncate|systemctl|xargs)\s|\bsudo\b.*\s-|\bkill\s+-|\bhermes\s+update\b",
        r"\b(?:mkfs|tee|pkill|killall|pgrep|pidof|launchctl|powershell|pwsh|nohup|appdata|invoke-\w+|iex)\b",
        r"\b(?:remove-item|taskkill|stop-process|stop-service|format-volume|clear-disk|diskpart)",
        r"\b(?:cipher|icacls|vssadmin|wbadmin|bcdedit)\s",
        r"\bcmd(?:\.exe)?\s+/|\b(?:del|erase|rd|rmdir)\s+/|\bformat(?:\.com)?\s+[a-z]:",
        r"\breg(?:\.exe)?\s+delete\b|\bsc(?:\.exe)?\s+(?:stop|delete)\b|\busers[\\/]\S*\.ssh",
        r"\bdrop\s+(?:table|database)\b|\bdelete\s+from\b",
        r"\bgit\s+(?:reset|push|clean|branch)\b|\bsed\s+-\S*i|\b(?:perl|ruby)\b.*\s-|\b(?:cp|mv|install)\b.*"
        + _GUARDED,
        r"\b(?:docker|podman)(?:-compose)?\s+(?:-|compose|context|restart|stop|kill|down)",
        r"\b(?:docker|container)_(?:host|context|connection)=|\bgateway\s+run\b|\bgateway\b.*\bhermes|\bhermes\b.*gateway",
        r"\bfind\b.*-(?:exec|del)|--(?:pre|hostname-bin|compress-program|pager|html)\b",
        r">>?\s*[\"']?" + _GUARDED,
        rf"\|\s*(?:[/\w]*/)?{_SHELLS}\b|\b{_SHELLS}\s*<|\|.*\b{_FETCHES}|<\s*<?\s*\(",
        rf"`|\$\(|:\(\)|[.(]\s*{_FETCHES}",
        r"169\.254\.169\.254|100\.100\.100\.200|metadata\.google|fd00:ec2",
        rf"(?<!\S)(?:(?-i:-[a-z]*[dFT])|--[a-z-]+)[\s=@\"'$].*(?:{_SECRETS})",
    )
)
#: The longest command of which Hermes reads all, in characters, with room for what it makes of it.
_LONGEST = 4_000
#: Characters of a `workdir` that no version refuses.
_FOLDER = r"[A-Za-z0-9/_\-. +@=,:]+"


def held_up(command: str) -> str:
    """Say why Hermes might not simply run a command that only reads; "" when it will."""
    text = unicodedata.normalize("NFKC", command)
    unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', '""', re.sub(r"'[^']*'", "''", command))
    if re.search(_LONG_LIVED, unquoted):
        return "the live tool may take it for a server that never ends"
    plain = re.sub(r"''|\"\"", "", re.sub(r"\\(.)", r"\1", text))
    if len(text) > _LONGEST or re.search(_DANGEROUS, text) or re.search(_DANGEROUS, plain):
        return "the live tool may refuse this command, or ask a person first"
    if "\\" in plain or "\\" in text and re.search("[\"'`;&|<>()]", _without_quoted(plain)):
        return "the live tool may not make out where its quotes end"
    return ""


def _without_quoted(command: str) -> str:
    """A command without what stands in quotes, and without the `&&` behind a `cd`."""
    rest = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    return re.sub(r"^ *cd [^&]*&&", "", rest)


def refused_folder(folder: str) -> bool:
    """Say whether Hermes may refuse to run a command in a folder of this name, or lead elsewhere."""
    return re.fullmatch(_FOLDER, folder) is None
