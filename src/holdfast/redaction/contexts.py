"""Finds secrets by their context: commands, headers, URLs, files of known formats, key blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from holdfast.redaction import calls, codes, programs
from holdfast.redaction.fitting import is_card, is_key, is_printed
from holdfast.redaction.literals import places
from holdfast.redaction.rule import Fit, Rule, rules
from holdfast.redaction.tokens import Span
from holdfast.redaction.values import is_mixed, is_placeholder, is_strong, is_word


@cache
def _compiled(source: str) -> re.Pattern[str]:
    """Compile a rule on first use: compiling all of them takes a tenth of a second."""
    return re.compile(source)


_OWN = (
    *rules(
        Fit.ANY,
        {
            # Headers.
            "authorization": (
                r"(?i:authorization)\\?[\"']?\s{0,4}[:=,]\s{0,4}\\?[\"']?(?i:(?:bearer|basic|token|digest|negotiate|ssws|apikey|key"
                r"|genie-?key|bot|oauth|hmac|aws4-hmac-sha256|api-?key)[ =]+(?:token=)?[\"']?)(?P<secret>(?![+(])[^\s\"',;\[\\]{3,2000}+)"
            ),
            "signature=": r"\bSignature=(?P<secret>[a-f0-9]{40,200}+|[A-Za-z0-9+/%_-]{27,400}+={0,2})",
            "honeycomb": r"(?i:X-Honeycomb-Team)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<secret>[A-Za-z0-9]{16,80}+)",
            "bearer|basic": r"\b(?i:bearer|basic),?\s{1,4}(?P<secret>(?=[A-Za-z._~+/-]{0,400}[\d=])[A-Za-z0-9._~+/-]{12,4000}+={0,2})",
            # URLs: the password in user:password@host, or a token instead of the user.
            "://": (
                r"://[^\s/@:\"'<>]{0,200}+:(?P<secret>[^\s/\"'<>\[]{1,400})(?=@)",
                r"://(?P<secret>[A-Za-z0-9_-]{20,400})(?=@)",
                r"://(?P<secret>[a-f0-9]{32}):[^\s/@]{1,80}@",
            ),
            "?|&": r"[?&;](?i:[\w.-]{0,30}(?:token|secret|passw(?:or)?d|pwd|pass|signature|api_?key|credential))=(?P<secret>[^\s&\"'#\[<>\\]{3,2000}+)",
            "oracle:thin:": r"(?i:oracle:thin:)\w{1,60}/(?P<secret>[^@\s\"']{1,200}+)@",
            # Commands.
            "curl|wget|http": r"(?<![\w-])(?:-u|--user|--proxy-user)(?:=|\s*)[\"']?[^\s:\"'/]{1,200}+:(?P<secret>[^\s\"'\[/]{1,400}+)",
            "curl|http|wget": r"(?<![\w-])(?:-u|--user)(?:=|\s+)[\"']?(?P<secret>(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{20,200}+):(?=[\"'\s]|$)",
            ":'": r"(?<![\w:])[\w.\\/-]{1,80}:'(?P<secret>[^'\n]{3,200}+)'@",
            "/p:'|/p:\"": r"(?<!\S)/p:[\"'](?P<secret>[^\"'\n]{3,200}+)",
            "signtool|schtasks|wbadmin|osql|certutil": r"(?i:\b(?:signtool|schtasks|wbadmin)\b)REST/r?p\s+VALUE",
            "obscure": r"\brclone obscure\s+VALUE",
            "7z|rar": r"\b(?:7z[ar]?|rar|unrar)\bREST-h?p[\"'](?P<secret>[^\"'\n]{3,200}+)",
            "psk": (
                r"\bpsk\s{0,3}[=\s]\s{0,3}'?\"(?P<secret>[^\"'\n]{3,200}+)\"",
                r"\bPSK\s{1,4}\"(?P<secret>[^\"\n]{3,200}+)\"",
            ),
            "ldappasswd": r"\bldappasswd\bREST-[as]\s*VALUE",
            "create_user|create_superuser|createuser|sequelize|ftp(|smtp(|imap(": r"(?i:create_(?:super)?user|createuser|sequelize|ftp\w{0,10}|smtp\w{0,10}|imap\w{0,10})\(\s{0,4}[\"'][^\"'\n]{0,80}[\"']\s{0,3},\s{0,4}[\"'][^\"'\n]{0,80}[\"']\s{0,3},\s{0,4}[\"'](?P<secret>[^\"'\n]{3,200}+)[\"']",
            "<string>": r"<key>[^<>\n]{0,60}(?i:secret|password|token|api_?key)</key>\s{0,20}<string>(?P<secret>[^<>\s]{4,400}+)</",
            "sasl|relay": r"\]:\d{2,5}\s+\S{1,80}:(?P<secret>[^\s:]{3,200}+)",
            "infura|alchemy|quiknode|ankr|moralis": r"(?:infura\.io|alchemy\.com|alchemyapi\.io|quiknode\.pro|ankr\.com)/(?:[\w-]{1,20}/){0,3}(?P<secret>[A-Za-z0-9_-]{24,80}+)",
            "office.com/webhook": r"office\.com/webhook/(?P<secret>[A-Za-z0-9@/_-]{20,300}+)",
            "sid=": r"(?<![\w])(?:connect\.)?sid=(?P<secret>s(?:%3A|:)[A-Za-z0-9_.%+/-]{16,400}+)",
            "totp|2fa|mfa|otp|authenticator": r"(?i:\b(?:totp|2fa|mfa|otp|authenticator)(?:[ _-](?:seed|secret|key|setup key))?)\s{0,2}(?:is|:|=)?\s{0,3}[\"'`]?(?P<secret>[A-Z2-7]{16,128}+=*|(?:[a-zA-Z2-7]{4} ){3,15}[a-zA-Z2-7]{4})(?![\w-])",
            "pass": r"(?i:pass(?:word|wd)?)\s{0,2}[:=]\s{0,2}[\"']?(?P<secret>[a-z]{4}(?: [a-z]{4}){3})(?![\w ])",
            "knife|sshpass|mosquitto|impacket": r"\bknife\bREST-P\s*VALUE",
            "snmp": (
                r"\bsnmp\w{0,12}\bREST-A\s*VALUE",
                r"\bsnmp\w{0,12}\bREST-X\s*VALUE",
            ),
            ".logon": r"\.logon\s+\S{1,80}?,(?P<secret>[^\s;,]{3,100}+)",
            "alias set|host add": r"\bmc\s+(?:alias set|config host add)\s+\S{1,60}\s+\S{1,200}\s+\S{1,100}\s+VALUE",
            "oathtool": r"\boathtool\bREST(?P<secret>[A-Z2-7a-f0-9]{10,128}+=*)(?=[\s|;&]|$)",
            " login ": r"(?m)^(?:[CS]?[:>]\s{0,2})?[A-Za-z]{0,3}\d{1,4}\s+LOGIN\s+\S{1,100}\s+VALUE",
            "rclone": r"\brclone\bREST(?:pass|password|token|secret_access_key|key)(?:=|\s+)VALUE",
            "setuser": r"(?i:\bacl\s+setuser)\s[^\n]{0,200}?>(?P<secret>[^\s\"']{1,200}+)",
            "bundle": r"\bbundle\s+config\b[^\n]{0,120}?\s[\w.@-]{1,60}:(?P<secret>[^\s\"'/:]{3,200}+)(?=\s|$)",
            "secret": r"(?i:\bsecrets?\s+(?:set|put|create|add))\bREST(?:-b|--body|--value|--text|-v)(?:=|\s+)VALUE",
            "securestring": (
                r"(?i:securestring)\bREST--value(?:=|\s+)VALUE",
                r"(?i:ConvertTo-SecureString)\s+(?:-String\s+)?VALUE",
            ),
            "crypt(": r"(?i:\bcrypt)\(\s{0,3}'(?P<secret>[^'\n]{3,200}+)'",
            "fernet(": r"\bFernet\(\s{0,3}b?[\"'](?P<secret>[A-Za-z0-9_=-]{30,60}+)",
            "wordpress": r"\bwordpress_(?:logged_in|sec)_\w{1,60}=(?P<secret>[^\s;\"']{10,600}+)",
            "md5": r"\"(?P<secret>md5[a-f0-9]{32})\"",
            "pin": r"\b(?:\w{1,40}_)?PIN=(?P<secret>\d{4,10})(?!\w)",
            "key=": r"(?<![\w.-])key=(?P<secret>[a-f0-9]{32}|[A-Za-z0-9_-]{32,80})&(?i:token|secret|sig)",
            "etcdctl|--user": r"(?<![\w-])--user(?:=|\s+)[\"']?[^\s:\"'/]{1,200}+:(?P<secret>[^\s\"'\[/]{1,400}+)",
            "http": r"\bhttps?\bREST(?:-a|--auth)(?:=|\s+)[\"']?[^\s:\"'/]{1,200}+:(?P<secret>[^\s\"'\[/]{1,400}+)",
            "curl": r"\bcurl\bREST(?:-b|--cookie)(?:=|\s*)[\"']?(?P<secret>[\w.-]{1,80}=[^\"'\n]{1,2000}?)(?=[\"'\n]|\s{1,40}+(?:-|http)|$)",
            "mysql|mariadb": r"\b(?:mysql|mysqldump|mysqladmin|mysqlsh|mysqlimport|mariadb|mariadb-dump)\bREST-p(?!\d+:\d)(?=[^\s\[-])VALUE",
            "mysqladmin": r"\bmysqladmin\bRESTpassword\s+VALUE",
            "mongo": r"\bmongo(?:sh|dump|restore|export|import)?\bREST-p(?:=|\s*)VALUE",
            "redis-cli|valkey-cli|keydb-cli": r"(?:redis|valkey|keydb)-cli\bREST-a(?:=|\s*)VALUE",
            "sshpass": r"\bsshpass\s+(?:-v\s+)?-p\s*VALUE",
            "login": r"\blogin\bREST-p(?:=|\s*)VALUE",
            "ldap": r"\bldap(?:search|modify|add|delete|whoami|passwd|compare)\bREST-w\s*VALUE",
            "smbclient|rpcclient|smbmap|mount|winexe|-u ": r"(?<![\w-])(?:-U|--user)(?:=|\s*)[\"']?[\w\\/.-]{1,80}%(?P<secret>[^\s\"']{1,200}+)",
            "sqlcmd|bcp|mosquitto|ipmitool|zip|tsql|isql|mssql|osql|osmosis|pdftk|pg_": r"\b(?:sqlcmd|bcp|mosquitto_pub|mosquitto_sub|ipmitool|zip|unzip|zipcloak|tsql|isql|osql)\bREST-P\s*VALUE",
            "7z|rar|cqlsh|nomad|impacket|clickhouse": r"\b(?:7z[ar]?|rar|unrar)\bREST-h?p(?P<secret>[^\s\"'-][^\s\"']{2,200}+)",
            "pass:": r"(?<!\w)pass:(?P<secret>[^\s\"',;&|]{3,200}+)",
            "htpasswd": r"\bhtpasswd\b[^\n|;&]{0,100}?\s-\w{0,6}b\w{0,6}\s+(?:-\w+\s+){0,4}[^\s-]\S{0,200}\s+(?:\S{1,80}\s+)?VALUE(?=\s*(?:$|[\n|;&\"']))",
            "ssh-keygen": r"\bssh-keygen\bREST-[NP]\s*VALUE",
            "lftp": r"\blftp\bREST-u\s+[\"']?[^\s,\"']{1,80},(?P<secret>[^\s\"']{1,200}+)",
            "sqlplus|impdp|expdp|sqlldr|rman": r"\b(?:sqlplus|impdp|expdp|sqlldr|exp|imp|rman)\b[^\n|;&]{0,60}?\s[\"']?\w{1,40}/(?P<secret>[^\s@\"'/]{3,200}+)@",
            "net use": r"(?i:\bnet use\b)[^\n]{0,160}?\s(?P<secret>[^\s/*\\][^\s]{2,200}+)\s+(?i:/user:)",
            "chpasswd": r"(?i:echo|printf)\s+(?:-\w+\s+)?[\"']?[\w.-]{1,60}:(?P<secret>[^\s\"'|]{1,200}+)[\"']?\s*\|[^\n|]{0,60}\bchpasswd",
            "sudo|stdin|login|token|passwd|gpg|kinit|cryptsetup|secret": (
                r"(?i:echo|printf|<<<)\s+(?:-\w+\s+)?VALUE\s*\|[^\n|]{0,120}?(?:\bsudo\b[^\n|]{0,30}\s-\w{0,6}S|-stdin\b|--with-token|\bpasswd\b|\bkinit\b|\blogin\b|\bunlock\b"
                r"|passphrase-fd|cryptsetup|secret(?:s)? (?:set|put|create)|secret create)"
            ),
            "unseal": r"(?i:unseal key)(?:\s*\d)?\s*[:=]\s*(?P<secret>[A-Za-z0-9+/=]{20,200}+)",
            "add_user|change_password|authenticate_user": r"\b(?:add_user|change_password|authenticate_user)\s+\S{1,80}\s+VALUE",
            "nmcli|wpa_passphrase|iwconfig|netsh": r"\bwpa_passphrase\s+\S{1,60}\s+VALUE",
            "useradd|usermod": r"\buser(?:add|mod)\bREST-p\s+VALUE",
            "snowsql|psql|impacket|evil-winrm|crackmapexec|netexec": r"\b(?:evil-winrm|crackmapexec|netexec|nxc)\bREST-p\s+VALUE",
            # Files of known formats and protocols.
            "login|machine": r"\b(?:login|machine|default)\s+\S{1,100}\s+password\s+(?P<secret>[^\s\"']{1,200}+)",
            "requirepass|masterauth|auth_pass": r"(?i:\b(?:requirepass|masterauth|auth_pass))\s+VALUE",
            "auth": (
                r"\bAUTH\s+(?:PLAIN|LOGIN|XOAUTH2)\s+(?P<secret>[A-Za-z0-9+/]{8,2000}+={0,2})",
                r"\"_?auth\"\s{0,4}:\s{0,4}\"(?P<secret>[A-Za-z0-9+/]{8,2000}+={0,2})\"",
            ),
            "community": r"(?i:snmp-server\s+community|rocommunity6?|rwcommunity6?|com2sec\s+\S+\s+\S+)\s+(?P<secret>[^\s]{4,200}+)",
            "identified": (
                r"(?:IDENTIFIED|(?i:\b(?:user|to)\s+\S{1,80}\s+identified))\s+(?i:(?:with\s+['\"]?\w{1,40}['\"]?\s+)?(?:by|as)(?:\s+password)?)\s+(?!:)VALUE",
                r"(?i:\bidentified\s+(?:with\s+['\"]?\w{1,40}['\"]?\s+)?by(?:\s+password)?)\s+'(?P<secret>[^'\n]{3,200}+)'",
            ),
            "password": r"(?i:\b(?:user|role|login|with|encrypted)\s[^\n;]{0,60}?\bpassword)\s{0,3}=?\s{0,3}'(?P<secret>[^'\n]{1,200}+)'",
            "assword": r"assword[^\n]{0,40}\n?[^\n]{0,20}\bsend(?:line)?\s*+\(?\s*+(?:--\s*+)?[\"'](?P<secret>[^\"'\\\n]{3,200}+)",
            "_auth": r"\b_auth\s{0,2}=\s{0,2}\"?(?P<secret>[A-Za-z0-9+/]{8,2000}+={0,2})",
            "phrase|mnemonic|seed": r"(?i:seed(?: phrase| words)?|mnemonic|recovery phrase)\\?[\"']?\s{0,3}(?:is|are|:|=)\s{0,3}\\?[\"']?(?P<secret>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
            "value>": r"(?i:password>)\s{0,20}<Value>(?P<secret>[^<>\s]{1,400}+)</",
            "private-lines": r"Private-Lines:\s*\d{1,3}\s+(?P<secret>(?:[A-Za-z0-9+/=]{4,200}+\s{0,3}+){1,60}+)",
            # Arguments in source code: the second of user and password, the first of a client.
            "connect(|connection(|pdo(|mysqli": r"(?i:(?:connect|connection|\bpdo|mysqli\w{0,20}))\(\s{0,4}(?:[\"'][^\"'\n]{0,200}[\"']|\$?[\w.]{1,40})\s{0,3},\s{0,4}[\"'][^\"'\n]{0,80}[\"']\s{0,3},\s{0,4}[\"'](?P<secret>[^\"'\n]{1,200}+)[\"']",
            "client(|session(": r"(?i:client|session)\(\s{0,4}[\"'][^\"'\n]{4,80}[\"']\s{0,3},\s{0,4}[\"'](?P<secret>(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_+/=-]{20,200}+)[\"']",
            "client(|api(|sdk(|init(|configure(|ai(|key(|token(": r"(?i:(?:client\w{0,10}|api|sdk|init|configure|ai|api_?key|token))\(\s{0,4}[\"'](?P<secret>(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{20,200}+)[\"']",
            "code|key": (
                r"(?i:\b(?:recovery|backup|rescue|scratch|wiederherstellungs|emergency)[ -]?(?:codes?|keys?))[^\n\d:]{0,30}[:\n]\s{0,4}"
                r"(?P<secret>(?:[\s,;|•*-]{0,6}(?:\d{1,2}[.)]\s{1,2})?(?=[A-Za-z-]{0,30}\d)[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,5}(?![\w-])){1,40}+)"
            ),
            # Prose.
            "passphrase": (
                r"(?i:passphrase)(?:\s+(?i:is|was|lautet|ist))?\s{0,2}[:=]?\s{0,3}[\"“„](?P<secret>[^\"”“\n]{6,200}+)[\"”“]",
                r"(?im:passphrase)(?: is| was|\s{0,2}[:=])\s{1,3}(?!(?:the|a|an|this|that|to|is|use|enter|your|must|if|when|for|should|we|it|in|of|and|was|not|or|with|on|as)\b)(?P<secret>(?:[a-z]{3,12}[ -]){3,11}[a-z]{3,12})(?=[.\s]{0,2}(?:\n|\Z))",
            ),
            "pin|code|otp|passcode": (
                r"(?i:\b(?:pin|otp|passcode|(?:one-time|verification|security|2fa|mfa|access|login|backup|recovery|bestätigungs|unlock|door|entry|gate|alarm|sim|zugangs|zutritts|confirmation|authentication|sms)[ -]?(?:code|password|pin)s?))\b"
                r"(?:\s+(?:\w{1,15}\s+){0,3}?(?:is|was|ist|lautet|es|est)|\s{0,2}[:=]|(?<=asscode)\s|(?<=ackup code)\s|(?<=covery code)\s)\s{0,2}[\"'`]?(?P<secret>(?:[A-Z]-)?\d{4,10}(?![\w.])|\d{3}[ -]\d{3}(?!\w)|\d{4,5}-\d{4,5}(?![\w-])|[a-z0-9]{4,8}-[a-z0-9]{4,8}(?![\w-]))"
            ),
        },
    ),
    *rules(
        Fit.STRONG,
        {
            # Headers.
            "authorization": r"(?i:authorization)\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?(?:[A-Za-z][\w-]{1,30} (?=[\w.+/=-]{0,40}\d))?(?P<secret>[^\s\"',;\[\\()!+:${<][^\s\"',;\[\\()!]{5,2000}+)(?!\()",
            # URLs: the password in user:password@host, or a token instead of the user.
            "?|&": (
                r"[?&](?i:sig|key|code|auth|hash|s|t|k)=(?P<secret>(?=[^\s&]{0,30}\d)[^\s&\"'#\[<>\\]{16,2000}+)",
                r"[?&](?i:app_?id|apikey|access_?key|licen[cs]e_?key|client_?secret|private_?key|session_?id|sid|ticket|jwt|otp|pin|pwd|assertion|refresh|id_token)=(?P<secret>(?=[^\s&]{0,60}\d)[^\s&\"'#\[<>\\]{6,2000}+)",
            ),
            "://": (
                (
                    r"://[^\s/\"'<>]{1,200}/(?:[\w.-]{1,60}/){0,6}?(?:hooks?|webhooks?|reset(?:-password|_password)?|password-reset|invite|invitation|magic|activate|confirm|verify|recover|token|apikey|key|share)"
                    r"/(?P<secret>(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_-]{16,400}+)(?![.\w-])"
                ),
                r"://[\d.]{7,15}(?::\d+)?/api/(?P<secret>(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_-]{32,80}+)(?=/)",
            ),
            # Commands.
            " -u| --user| -l ": r"\s(?:-[uUl]|--user(?:name)?)(?:=|\s*)[^\s-][^\s|;&]{0,80}\s[^\n|;&]{0,120}?(?<!\S)-(?:p|P|w|W|pw|passwd)(?:=|\s+)VALUE",
            " -u| --user": r"(?<!\S)-(?:p|P|w|pw)\s+VALUE(?=\s[^\n|;&]{0,120}?(?<!\S)(?:-[uU]|--user(?:name)?)[\s=])",
            "auth|cred|userpwd": r"(?<![\w-])--[\w-]{0,20}(?:creds?|credentials?|auth|userpwd)(?:=|\s+)[\"']?[\w.@-]{1,60}:(?P<secret>[^\s\"'\[/]{3,200}+)",
            "sp_add|sp_password": r"(?i:\bsp_(?:addlogin|password|addlinkedsrvlogin))\b[^\n]{0,80}?,\s{0,3}N?'(?P<secret>[^'\n]{3,200}+)'",
            "openssl passwd": r"\bopenssl passwd\s+(?:-\S+\s+){0,4}(?!-)VALUE",
            "isakmp|chap|ospf|hsrp|ntp": r"(?i:\bisakmp key|authentication-key\s\d{1,5}\s\w{1,10}|message-digest-key\s\d{1,3}\s\w{1,10})\s+(?:\d\s+)?(?P<secret>[^\s]{4,100}+)",
            "password": (
                r"(?i:\bpassword)\s+[0-9]\s+(?P<secret>[^\s]{4,100}+)",
                r"(?i:\bpassword)\s*+\(?\s*+'(?P<secret>[^'\n\])},:;][^'\n]{2,200}+)'",
            ),
            "hmac": r"(?i:hmac(?:\.new|_\w{1,10})?)\(\s{0,3}(?:[\"'][\w-]{3,12}[\"']\s{0,3},\s{0,3})?b?[\"'](?!(?:sha|md|blake|ripemd|SHA|MD)[\w/-]{0,10}[\"'])(?P<secret>[^\"'\s]{6,200}+)[\"']",
            "jwt|sign(|encode(|verify(": r"(?i:jwt\.\w{1,20}|\bsign|jsonwebtoken\.\w{1,20})\(\s{0,3}[\w.{}:\s\"']{1,60}?,\s{0,3}[\"'](?P<secret>[^\"'\s]{5,200}+)[\"']",
            "crypt|argon|hashpw|hash(": r"(?i:(?:bcrypt|argon2|scrypt)(?:\.\w{0,16})?|\bcrypt|hashpw|gen_?password_?hash|make_password|set_password|check_password(?:_hash)?)\(\s{0,3}b?[\"'](?P<secret>[^\"'\s]{5,200}+)[\"']",
            "radtest|isql": r"\b(?:radtest|isql)\s+(?:[\w.]{1,30}\s+)?[\w.@-]{1,60}\s+(?P<secret>[^\s-]\S{3,100}+)",
            "net user": r"(?i:\bnet user)\s+(?:\"[^\"\n]{1,60}\"|[^\s/\"]{1,60})\s+(?P<secret>[^\s/*][^\s]{2,200}+)",
            " using ": r"\buser\s+\S{1,60}\s+using\s+VALUE",
            "codecov|percy|chromatic|expo|sentry-cli": r"\b(?:codecov|chromatic|sentry-cli)\bREST(?:-t|--auth-token|--project-token)(?:=|\s+)VALUE",
            " login | auth | init | unlock | activate | authtoken | set-key | set-token | apikey | token ": (
                r"(?m)^[$>#%\s]{0,6}(?:sudo\s)?(?!git\b)[\w./-]{2,30} (?:[a-z-]{2,20} ){0,2}?(?:login|auth|init|unlock|activate|authtoken|add-authtoken|set-key|set-token|apikey|token)"
                r" (?:--?[\w-]{1,20}[ =])?[\"']?(?P<secret>(?=[A-Za-z_.-]{0,40}\d)[A-Za-z0-9_.~+/=-]{20,400}+)[\"']?(?=\s|$)"
            ),
            "--value|--secret": r"(?i:(?:password|secret|token|api[-_/]?key|passwd)[\w/\"'-]{0,40})\sREST--(?:value|secret-string|secret-data|data)(?:=|\s+)VALUE",
            "<<<": r"<<<\s{0,3}[\"'](?P<secret>[^\s\"'$]{4,100}+)[\"']",
            "auth-user-pass|bindpw|rootpw|auth_pass": r"(?i:\b(?:auth-user-pass|bindpw|rootpw|auth_pass))[ \t:=]{1,4}(?:[\w.@-]{1,40}\s{0,2}[/:]\s{0,2})?VALUE",
            "server key|key 7|key 0|key-string": r"(?i:\b(?:server|host\s\S{1,60})\s+key|\bkey-string)\s+(?:\d\s+)?(?P<secret>[^\s]{4,200}+)",
            "new value": r"(?i:password)[^\n]{0,100}\n{1,2}\s{0,4}(?i:new value|value)\s{0,2}:\s{1,3}(?P<secret>\S{6,200}+)",
            "username": r"\"username\"\s{0,3}:\s{0,3}\"[^\"\n]{1,80}\"\s{0,3},\s{0,20}\"key\"\s{0,3}:\s{0,3}\"(?P<secret>[^\"\n]{16,200}+)\"",
            "_auth=": r"\b\w{1,40}_AUTH=[\"']?(?:\w{1,30}[/:])?(?P<secret>[^\s\"'$<{/:]{4,200}+)",
            "-f |--form|--data|-d ": r"\bcurl\bREST(?:-F|-d|--form|--data(?:-\w{1,12})?)(?:\s+|=)[\"']?user=(?P<secret>[A-Za-z0-9]{30})(?!\w)",
            "cqlsh|influx|az |cypher-shell|snowsql|kcadm|oc ": r"\b(?:cqlsh|influx|az|cypher-shell|oc)\bREST-p(?:=|\s+)VALUE",
            "openssl": r"\bopenssl\bREST-[kK]\s+VALUE",
            "security": r"\bsecurity\b[^\n|;&]{0,40}(?:password|keychain)\bREST-[wp]\s+VALUE",
            "/user:": r"(?i:/user:)[^\s]{1,80}\s+(?P<secret>[^\s/][^\s]{2,200}+)",
            "/p:|/pass": r"(?<!\S)(?i:/p(?:ass(?:word)?)?):(?P<secret>[^\s\"']{3,200}+)",
            "vault": r"\bvault\s+(?:login|unwrap|operator unseal)\s+(?:-\S+\s+){0,4}(?!-)VALUE",
            "authtoken|auth": r"(?i:authtoken|auth-token|auth_token|auth (?:init -t|login --token|token))\s+VALUE",
            "cargo|gem|npm|fly|heroku|doctl|gh |ngrok|netlify|wandb|hf |huggingface": r"\b(?:cargo|gem|npm|flyctl|fly|doctl|ngrok|netlify|wandb|huggingface-cli|hf)\s+(?:auth\s+)?(?:login|signin|init)\s+(?:--?\w+[ =])?VALUE",
            "config": r"\bconfig(?:ure)?\s+set\s+(?:--\S+\s+){0,3}\S{0,80}(?i:key|token|secret|password|auth)\s+VALUE",
            # Files of known formats and protocols.
            ":": r"(?m)^(?:[\w.*-]{1,100}|\[[\da-f:]{2,40}\]):(?:\d{2,5}|\*):[\w*-]{1,60}:[\w*.-]{1,60}:(?P<secret>[^\s:]{3,200}+)$",
            "auth": (
                r"(?m)^(?:\S{1,40}>\s*)?AUTH[ \t]+(?!(?:PLAIN|LOGIN|TLS|SSL)\b)(?:\w{1,40}[ \t]+)?(?P<secret>\S{4,200}+)$",
                r"(?i:\bbasic[ -]auth(?:entication)?)\s{0,2}[:=]?\s{1,2}[\"'`]?[\w.@+-]{2,60}[:/](?P<secret>[^\s\"'`,]{4,100}+)",
            ),
            "pass ": r"(?m)^(?:[>C:\s-]{0,6})PASS\s+:?(?P<secret>\S{3,200}+)\s*$",
            "identify|nickserv": r"(?i:\b(?:identify|nickserv\s+register))[ \t]+(?:\w{1,30}[ \t]+)?(?P<secret>[^\s]{4,200}+)",
            "enable |username ": r"(?i:\b(?:enable|username\s+\S{1,40}(?:\s+privilege\s+\d+)?)\s+(?:secret|password))\s+(?:\d{1,2}\s+)?(?P<secret>[^\s]{4,200}+)",
            "snmp": r"\bsnmp(?:get|walk|set|bulkwalk|next|table)\bREST-c\s*VALUE",
            '"': r"\"(?:d|k|p|q|dp|dq|qi)\"\s{0,3}:\s{0,3}\"(?P<secret>[A-Za-z0-9_-]{22,800}+)\"",
            "sess|sid=|xsrf|csrf|remember": (
                r"(?<![\w.-])(?i:connect\.sid|phpsessid|jsessionid|asp\.net_sessionid|aspsessionid\w{0,20}|(?-i:sessionid)|[a-z]{2,20}_session|csrftoken|xsrf-token|remember_token)"
                r"=(?P<secret>[A-Za-z0-9_.%+/:-]{12,2000}+)"
            ),
            # Arguments in source code: the second of user and password, the first of a client.
            "credential|auth(|auth=(|auth = (|login(|authenticate(|basicauth|usernamepassword|connect(": (
                r"(?i:\w{0,30}(?:credentials?|auth|usernamepassword\w{0,20}|login|authenticate|connect))(?:\s?=\s?)?[({]\s{0,4}(?:[\"'][\"'],\s{0,4})?(?:[\"'][^\"'\n]{0,80}[\"']|[\w.]{1,40})\s{0,3},\s{0,4}"
                r"[\"'](?P<secret>[^\"'\n\s]{4,200}+)[\"'](?!\s{0,3},\s{0,3}[\"'][^\"'\n]{1,80}[\"']\s{0,3}[,)])"
            ),
            "password|_pass|_pwd|token|secret|_key": r"\b[A-Z][A-Z0-9_]{0,40}_(?:PASSWORD|PASS|PWD|TOKEN|SECRET|KEY)[`\"']?\s+(?:is|was|to|ist|lautet|→|->)\s+VALUE",
            "bind": r"(?i:\b\w{0,12}bind\w{0,8})\(\s{0,3}(?:\w{1,10}=)?[\"'][^\"'\n]{1,120}[\"']\s{0,3},\s{0,3}(?:\w{1,10}=)?[\"'](?P<secret>[^\"'\s]{4,100}+)[\"']",
            " or |??|env": r"(?i:(?:pass(?:word|wd|phrase)?|secret|token|key|pwd|pw)(?:[_A-Z]\w{0,20})?)[\"'\])]{0,4}\s{0,3}(?:\|\||\?\?|or)\s{0,3}[\"'](?P<secret>[^\"'\s]{5,200}+)[\"']",
            # Prose.
            "are the cred|are the login|as login|for login": r"(?<!\S)[\w.@-]{2,40}[:/](?P<secret>[^\s,;:/]{4,80}+)\s+(?:are|is|as|for)\s+(?:the\s+|my\s+)?(?:cred|login)",
            "from|von|de ": r"(?i:\b(?:password|passwort|kennwort|passphrase|pw|token|secret|mot de passe|contraseña)\b[^\n]{0,40}?\s(?:from|von|de))\s+VALUE(?=\s+(?i:to|auf|zu|in|a|à)\s)",
            " as | for | als | como | comme | nach ": (
                r"(?i:\b(?:use|uses|used|with|try|using|enter|type|set|nimm|nutze|mit|usa|utilise))\s+[\"'`]?(?P<secret>[^\s\"'`()<>=]{5,60}+)[\"'`]?\s+(?i:(?:as|for|als|como|comme|(?:when|if) \w{1,12} for|wenn nach)"
                r"\s+(?:\w{1,10}\s+){0,3}?(?:password|passwort|kennwort|pw|passphrase|pin|contraseña|mot de passe|senha))\b"
            ),
            "log|sign|anmeld|connect": r"(?i:\b(?:log(?:ged|ging)?|sign(?:ed)?)[ -]?(?:in|on)(?:to)?\b[^\n]{0,40}?\b(?:as|with)\s+[\w.@-]{2,60}\s+(?:with|using|and|/))\s+(?:password\s+)?[\"'`]?(?P<secret>(?=[^\s\d]{0,60}\d)[^\s\"'`,;()]{6,60}+)",
            "pass": r"(?i:\buser(?:name)?)\s{0,2}[:=]?\s{0,2}[\"'`]?[\w.@-]{1,60}[\"'`]?[\s,;/]{1,3}(?i:and )?(?i:pass)\s+[\"'`]?(?P<secret>[^\s\"'`,;]{4,100}+)",
            "cred|login|log in|logged in|zugang|sign in|user|access|acceso|accès|identifiants": (
                r"(?i:\b(?:credentials?|creds?|logins?|log(?:ged)? in(?: with| as| using)?|zugangsdaten|sign in(?: with| as)?|user(?:name)?\s?/\s?pass(?:word|wort)?|identifiants|credenciales|zugang|accesso|acceso|accès))"
                r"(?:\s+(?:are|is|for \S{1,40}))?\s{0,2}[:=]?\s{1,2}[\"'`]?[\w.@+-]{2,60}+[\"'`]?\s{0,2}[/:|,]\s{0,2}[\"'`]?(?!\w{1,30}=)(?P<secret>[^\s\"'`,]{4,100}+)"
            ),
        },
    ),
    *rules(
        Fit.MIXED,
        {
            # Commands.
            "<<<": r"<<<\s{0,3}(?P<secret>[^\s\"'$]{6,100}+)(?=\s|$)",
            " login ": r"\b(?:bw|lpass|rbw|heroku|az|oc|cf|tsh|argocd)\s+login\s+[\w.+@-]{2,80}\s+(?!-)VALUE",
            "pass|pwd|pw |_pw|secret": r"(?i:(?:pass(?:word|wd|phrase|wort|code)?|pwd|secret)(?:-value|-text|_value)?|[_/]pw)[\"'\])]{0,3}(?:\.\w{1,20}\(|[,:=(]|\s){1,4}\s{0,3}[\"'`](?P<secret>[^\s\"'`]{6,100}+)[\"'`]",
            "/pass|_pw|-pw|/secret|/token|_pass|-pass": r"(?i:[/_.-](?:password|passwd|pass|pw|pwd|passphrase|secret|token))[\"']?\s{1,3}(?P<secret>[^\s\"'`()<>|;,]{6,100}+)(?=\s|$)",
            # Arguments in source code: the second of user and password, the first of a client.
            "passwords|secrets|tokens|keys|passphrases": r"(?i:passwords|secrets|tokens|keys|passphrases)[\"']?\s{0,3}[:=]\s{0,3}[\[({]\s{0,4}(?:[\"']\[redacted\][\"']\s{0,3},\s{0,4}){0,20}[\"'](?P<secret>[^\"'\s]{6,200}+)[\"']",
            "password|passwort": r"[\"'](?P<secret>[^\"'\s]{6,100}?)(?:\\n)?[\"'][\]\s)},;]{0,6}(?:#|//|--)\s{0,3}(?:\w{1,15}\s){0,2}(?i:password|passwort)\b",
            # Prose.
            "cred|login|zugang": r"(?i:\b(?:credentials?|creds?|logins?|zugangsdaten)\b[^\n:]{0,30}):\s{1,2}[\w.@-]{2,40}\s{1,3}(?P<secret>[^\s,;]{6,80}+)",
        },
    ),
    *rules(
        Fit.SESSION,
        {
            # Headers.
            "cookie": r"(?i:(?<![\w-])(?:set-)?cookie)\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?(?P<secret>[A-Za-z0-9_.-]{1,80}=[^\r\n\"'\[\\]{1,4000}+)",
        },
    ),
)

RULES = (*_OWN, *programs.RULES, *calls.RULES, *codes.RULES)
_ATTRIBUTES = frozenset({"path", "expires", "max-age", "domain", "samesite", "version", "priority"})


def _is_session(cookies: str) -> bool:
    """Return whether one of these cookies is a credential: by its name, or because its value is random."""
    pairs = [pair.strip().partition("=") for pair in cookies.split(";")]
    given = [(name.lower(), value) for name, _, value in pairs if name.lower() not in _ATTRIBUTES and value]
    return any(
        not is_placeholder(value)
        and (is_strong(value, 6) or any(word in name for word in ("sess", "sid", "auth", "token", "jwt", "login")))
        for name, value in given
    )


_FITS: dict[Fit, Callable[[str], bool]] = {
    Fit.ANY: bool,
    Fit.STRONG: lambda value: is_strong(value, 4),
    Fit.MIXED: is_mixed,
    Fit.KEY: is_key,
    Fit.PRINTED: is_printed,
    Fit.CARD: is_card,
    Fit.SESSION: _is_session,
}
NEEDLES = {
    needle: [number for number, one in enumerate(RULES) if needle in one.needles]
    for needle in sorted({needle for one in RULES for needle in one.needles})
}

_KEY_BLOCK = re.compile(
    r"-----?-? ?BEGIN [A-Za-z0-9 ]{0,40}?(?:PRIVATE KEY(?: BLOCK)?|Static key V1) ?-----?"
    r"(?P<secret>(?:(?:\s|\\+[nr]|[\"'+,>|#*]){1,60}+(?:[A-Z][A-Za-z-]{2,20}: [^\n\\]{1,100}+|[A-Za-z0-9+/=]{16,}+|=?[A-Za-z0-9+/=]{1,15}+(?=(?:\s|\\+[nr]|[\"'+,]){1,60}-----END)))++"
    r"(?:(?:\s|\\+[nr]|[\"'+,>|#*]){0,60}+-----?-? ?END [A-Za-z0-9 ]{0,60}-----?)?)"
)


def _windows(text: str, lowered: str, one: Rule) -> Iterator[Span]:
    """Yield where to apply a rule: in a long text the lines around its fixed strings, in a short one everywhere."""
    if len(text) < MIN_WINDOWED_CHARS or min(map(len, one.needles)) < MIN_NEEDLE_CHARS:
        yield 0, len(text)
        return
    reach = FAR_LINES if "{1,60}" in one.source or "{1,40}" in one.source else NEAR_LINES
    at = 0
    for place in sorted({place for needle in one.needles for place in places(lowered, needle)}):
        if place >= at:
            start = place
            for _ in range(NEAR_LINES):
                start = max(text.rfind("\n", 0, start), 0)
            at = place
            for _ in range(reach):
                following = text.find("\n", at)
                at = following + 1 if following >= 0 else len(text)
            yield start, at


MIN_WINDOWED_CHARS, MIN_NEEDLE_CHARS = 1_000, 3
NEAR_LINES, FAR_LINES = 4, 80
"""Lines before and after a fixed string that a rule's match may span."""


def context_spans(text: str, held: Iterable[str]) -> Iterator[Span]:
    """Yield secrets that are recognised by their context."""
    if "BEGIN " in text:
        for found in _KEY_BLOCK.finditer(text):
            yield found.span("secret")
    lowered = text.lower() if "İ" not in text else text.replace("İ", "I").lower()
    chosen = {number for needle in held if needle in NEEDLES for number in NEEDLES[needle]}
    for one in [RULES[number] for number in chosen]:
        pattern = _compiled(one.source)
        for found in (hit for window in _windows(text, lowered, one) for hit in pattern.finditer(text, *window)):
            group = found.lastgroup or "secret"
            value = found[group].rstrip(".,;:)") if one.fit is Fit.STRONG else found[group]
            if value and not is_placeholder(value) and not is_word(value) and _FITS[one.fit](value):
                start = found.start(group)
                yield start, start + len(value)
