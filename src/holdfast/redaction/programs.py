"""Rules for programs that take a password as an option or an argument, or print one. Pure, no I/O."""

from __future__ import annotations

from holdfast.redaction.rule import Fit, Rule, rules

_OPTIONS = {
    r"-p": "mutool mudraw mupdf rcon mcrcon rcon-cli mycli psexec psexec64 psexec.py wmiexec.py smbexec.py vncdo vncdotool rdesktop rabbitmqadmin twine choco "
    "xcrun altool notarytool ncftpput ncftpget ncftp ncftpls couchbase-cli cbq cbbackupmgr hydra medusa smbmap enum4linux yt-dlp youtube-dl gallery-dl beeline hdbsql trino presto "
    "exaplus kcadm.sh kcadm keycloak racadm esxcli govc vcsim ovftool steghide aescrypt msoffcrypto-tool kopia hashcat zipcrack fcrackzip arangosh asadmin jboss-cli.sh "
    "dbmate crane podman skopeo oras helm nerdctl buildah regctl jfrog acli jira s3fs nordvpn protonvpn-cli expressvpn iscsiadm ipmi-chassis influx influxd "
    "certutil pvk2pfx unrar sshfs curlftpfs deluge-console sipp freerdp wfreerdp ejabberdctl prosodyctl openvpn3 vmrun evil-winrm net-snmp kinit",
    r"-P": "sqsh fisql freebcp defncopy datacopy p4 knife mosquitto_rr ipmiutil ipmi-sensors smbget zipnote security zipsplit tsql rtcmix aerospike asql hivecli",
    r"-w": "vsql vertica ldapmodrdn ldapexop ldapurl ldapvi kadmin ldapcompare ldapwhoami ldapdelete nzsql security",
    r"-k": "mcrypt outguess openssl sshpass fastboot ipmitool",
    r"-K": "ccrypt ccencrypt ccdecrypt ccat openssl",
    r"-s": "slappasswd doveadm",
    r"-pw": "kadmin kadmin.local nzsql nzload plink pscp psftp putty kitty",
    r"-a": "redis-benchmark redis-dump",
    r"-(?:ap|au-pass|xp|smtp-pass)": "swaks sendemail sendEmail",
    r"-(?:gp|vp)": "vmrun",
    r"-(?:po|pi)": "pvk2pfx makecert",
    r"-[ou]pw": "pdfinfo pdftotext pdftoppm pdfimages pdftops pdftocairo pdftohtml pdffonts pdfdetach pdfattach pdfunite pdfsig",
    r"-g": "arj",
    r"-(?:pass|password|passwd|passphrase|PWD)": "osslsigncode exiftool flyway influx x11vnc vncpasswd xvfb jarsigner impala-shell gmic unzip john",
    r"/(?:rp|p|pass|password)[ :]": "schtasks signtool wbadmin wmic cmdkey mstsc xfreerdp wfreerdp netdom dsadd dsmod djoin",
}


_NEEDLES = {
    r"-(?:ap|au-pass|xp|smtp-pass)": " -ap | -xp | -smtp-pass| -au-pass",
    r"-(?:gp|vp)": " -gp | -vp ",
    r"-(?:po|pi)": " -po | -pi ",
    r"-[ou]pw": " -opw| -upw",
    r"-(?:pass|password|passwd|passphrase|PWD)": " -pass| -pwd",
    r"/(?:rp|p|pass|password)[ :]": " /rp| /p| /pass",
}
"""Fixed strings that occur in any text with one of these options."""


def _rules_of(option: str, programs: str) -> list[Rule]:
    names = programs.replace(".", r"\.").replace(" ", "|")
    gap = r"\s*" if option.endswith("]") else r"(?:=|\s+)"
    needles = _NEEDLES.get(option, f" {option.lower()}")
    return rules(Fit.STRONG, {needles: rf"\b(?:{names})\bREST{option}{gap}(?!-)VALUE"})


_PRINTING = (
    r"(?:(?:cat|head|tail|less|more|type|bat|tee|nano|vi|vim|sops|gpg|age|xxd|Get-Content)\b[^\n]{0,160}?(?:key|pass|secret|token|credential|auth|login|pw|pin)[^\n]{0,80}"
    r"|(?:pass|gopass|lpass|passage)\s(?:show\s|-c\s)?[^\n]{1,100}|op\s(?:read|item get)[^\n]{0,140}|bw\sget[^\n]{0,100}|aws\s(?:ssm get-param|secretsmanager get|ecr get-login|sts|codeartifact get|eks get-token)[^\n]{0,240}"
    r"|gcloud\s(?:secrets|auth print)[^\n]{0,160}|az\s(?:keyvault secret|account get-access|acr)[^\n]{0,200}|kubectl\s[^\n]{0,80}(?:secret|token)[^\n]{0,160}|terraform\soutput[^\n]{0,100}"
    r"|heroku\sconfig:get[^\n]{0,100}|vault\s(?:kv|read|print|token)[^\n]{0,120}|doppler\ssecrets[^\n]{0,100}|(?:argocd|gitlab-rails|sudo|docker|podman)\s[^\n]{0,100}(?:password|secret|token)[^\n]{0,80}"
    r"|(?:pwgen|apg|makepasswd|mkpasswd|openssl rand|diceware|xkcdpass|uuidgen -s)\b[^\n]{0,60}|security\sfind-[^\n]{0,120}|secret-tool\slookup[^\n]{0,100}|gh\sauth token[^\n]{0,40}|chamber\sread[^\n]{0,80}"
    r"|(?:echo|printenv|Write-Host)\s[\"']?(?:\$\{?|\$env:)?\w{0,30}(?:PASS|SECRET|TOKEN|KEY|PWD|PW)\w{0,20}\}?[\"']?|[^\n]{0,120}base64 (?:-d|-D|--decode))"
)

RULES = (
    *(rule for option, programs in _OPTIONS.items() for rule in _rules_of(option, programs)),
    *rules(
        Fit.ANY,
        {
            "--encrypt": r"\bqpdf\bREST--encrypt\s+(?P<secret>[^\s-]\S{0,100}\s+[^\s-]\S{0,100})\s+(?:40|128|256)\b",
            "_pw": r"\b(?:input|owner|user)_pw\s+(?!PROMPT)VALUE",
            "wbinfo|net ads|net rpc|adcli": r"\b(?:wbinfo|net (?:ads|rpc)|adcli)\bREST(?:-a|-U)\s*[\"']?[\w\\.+-]{1,60}%(?P<secret>[^\s\"']{3,100}+)",
            "steamcmd|+login|+rcon|+sv_": r"\+(?:login\s+[\w.@-]{2,60}|rcon_password|sv_password|rcon\.password)\s+(?!\+)VALUE",
            "begin(|.connect(": r"(?i:\b(?:wifi\w{0,8}|wlan|sta_if|station|nic)\.(?:begin|connect|softap))\(\s{0,3}[\"'][^\"'\n]{1,60}[\"']\s{0,3},\s{0,3}[\"'](?P<secret>[^\"'\n]{4,100}+)[\"']",
            "passwd|runas": r"(?i:echo|printf)\s+(?:-\w+\s+)?[\"'](?P<secret>[^\"'\n$]{4,100}+)[\"'][^\n|]{0,20}\|[^\n|]{0,40}\b(?:passwd|runas)",
            "runas": r"(?i:echo)\s+(?P<secret>[^\s\"'|]{4,100}+)\s{0,3}\|[^\n|]{0,40}\brunas",
            "rcon|sv_pass": r"\b(?:rcon_password|sv_password|g_password|rconpassword)\s+VALUE",
            "mosquitto_passwd|htdigest|htpasswd": r"\b(?:mosquitto_passwd|htpasswd)\s+-\w{0,4}[bn]\w{0,4}\s+(?:\S{1,100}\s+){1,2}(?P<secret>[^\s-]\S{2,100}+)(?=\s*(?:$|\n|[|;&>]))",
            "altool|notarytool|app-specific|apple|-p |password": r"(?i:altool|notarytool|app[- ]specific|apple|fastlane|password|(?<!\S)-p)\b[^\n]{0,80}?[\s\"'=:](?P<secret>[a-z]{4}-[a-z]{4}-[a-z]{4}-[a-z]{4})(?![\w-])",
            "/d ": r"(?i:\breg(?:\.exe)? add\b)[^\n]{0,200}?(?i:password|secret|token|pwd)\b[^\n]{0,60}?/d\s+VALUE",
            "rootpw": r"\brootpw\s+(?:--(?:plaintext|iscrypted|allow-ssh)\s+){0,3}(?!-)VALUE",
            "option key|.key=": r"(?:\boption key\s+|\buci set \S{1,80}\.key=)VALUE",
            "netsh|hostednetwork": r"(?i:\bnetsh\b)[^\n]{0,160}?\bkey(?:Material)?=VALUE",
            "pserver": r":(?:pserver|ext):[\w.-]{1,40}:(?P<secret>[^@\s:]{2,100}+)@",
            "eap|xauth|psk|rsa": r"(?m)^[ \t]*[\w.@%*\" -]{0,80}:[ \t]{1,3}(?:EAP|XAUTH|PSK|NTLM|PIN)[ \t]{1,3}\"?(?P<secret>[^\s\"]{3,200}+)",
            "ipsec secret|xauth password|group password": r"(?i:\b(?:ipsec secret|xauth password|group password))[ \t]{1,4}(?P<secret>\S{3,200}+)",
            "auth-user-pass": r"<auth-user-pass>\s{1,4}\S{1,100}\s{1,4}(?P<secret>\S{2,200}+)\s{1,4}</auth",
            "stats auth|login=": r"(?<!\S)(?:stats auth\s+|login=)[\w.@-]{1,60}:(?P<secret>[^\s\"']{3,200}+)",
            "register": r"\bregister\s{0,3}=>\s{0,3}[\w.+-]{1,60}:(?P<secret>[^\s@:]{2,100}+)(?=[@:])",
            "ftp> user|user ": r"(?m)^(?:n?c?l?s?ftp>\s*)user\s+\S{1,60}\s+(?P<secret>\S{3,100}+)",
            "createuser": (
                r"\bcreateUser\s+(?:-e \S{1,60} )?\S{1,60}\s+(?:MD5|SHA\S{0,8})\s+(?P<secret>\"[^\"\n]{3,100}\"|\S{3,100})",
                r"\bcreateUser\s[^\n]{5,160}?\s(?:DES|AES\S{0,8})\s+(?P<secret>\"[^\"\n]{3,100}\"|\S{3,100})",
            ),
            "{": r"\{(?:PLAIN|CLEAR|CLEARTEXT|PLAIN-MD5|CRAM-MD5|DIGEST-MD5|LDAP-MD5|SMD5|MD5|NTLM|LANMAN|BLF-CRYPT|SHA512-CRYPT|SHA256-CRYPT|MD5-CRYPT|CRYPT|HMAC-MD5|RPA|SCRAM-SHA-1)(?:\.\w{3,7})?\}(?P<secret>[^\s:\"'{}]{3,400}+)",
            "chpasswd": r"(?m)(?s:\bchpasswd\b.{0,80}?)^[ \t-]{0,12}[\w.-]{1,40}:(?P<secret>[^\s:]{3,200}+)[ \t]{0,4}$",
        },
    ),
    *rules(
        Fit.STRONG,
        {
            "smbclient": r"\bsmbclient\s+\S{3,100}\s+(?P<secret>[^\s-]\S{3,100}+)(?=\s+-)",
            "register|/oper|--setpw|secret-set-value|login serveradmin|addauth|admins add|authenticate|-supw|user:password|usermod|-passwd|admin create": (
                r"(?i:\b(?:ejabberdctl register|prosodyctl register|synouser --\w{3,8}|virsh secret-set-value|emqx ctl admins add|multipass authenticate|murmurd -supw|drush \S{0,20}user[:-]password|dscl \. -passwd|login serveradmin)|(?<!\S)/oper|\baddauth digest)"
                r"(?:\s+(?=\S{1,60}\s+\S)[^\s:]{1,60}(?:\s+(?=\S{1,60}\s*$)[\w-]{1,40}\.[\w.-]{1,40})?)?[\s:]{1,4}(?:[\w.-]{1,40}:)?[\"']?(?P<secret>[^\s\"':]{4,200}+)"
            ),
            "-p:|-pw:": r"(?<!\S)-(?:p|pw|pass|password):VALUE",
            "typeorm": r"\btypeorm\bREST-x\s+VALUE",
            ".login=|user=": r"(?:\bsonar\.login=|^user=[\w.-]{1,40}:)(?P<secret>[^\s\"']{5,200}+)",
            "password '|password \"": r"\b[a-z]{2,20}Password\s{1,3}[\"'](?P<secret>[^\"'\n]{4,100}+)[\"']",
            " pass | pw ": r"(?i:\b(?:ssh|sftp|ftp|scp|telnet|rdp|vnc)\b[^\n]{0,60}?\b(?:pass|pw))\s+(?P<secret>(?=[^\s\d]{0,40}\d)[^\s\"'`,;()]{5,60}+)",
            "auth:": r"(?i:\bauth)\s?[:=]\s?[\w.@-]{2,40}/(?P<secret>(?=[^\s\d]{0,40}\d)[^\s/\"',;]{5,60}+)(?=[\s,;]|$)",
            ".py ": r"\b\w{3,30}\.py\s[^\n]{0,60}?[\w.-]{2,40}/[\w.-]{1,40}:(?P<secret>[^\s/\"',;:@]{4,60}+)(?=[@\s\"']|$)",
            "passwd": r"(?i:echo|printf)\s+(?:-\w+\s+)?(?:[\"']%s(?:\\n)?[\"']\s+)?VALUE[^\n]{0,80}?\|[^\n|]{0,60}?(?:passwd|cryptsetup|vncpasswd|kubeseal|login|secret|openconnect|kinit|\bipa\b|\bp4\b|env add|wrangler|gpg|sudo|ansible-vault|unlock|stdin)",
            "cryptsetup|kubeseal|openconnect|env add|ipa |p4 login|wrangler|ansible-vault|unlock": r"(?i:echo|printf)\s+(?:-\w+\s+)?(?:[\"']%s(?:\\n)?[\"']\s+)?VALUE[^\n]{0,80}?\|[^\n|]{0,60}?(?:cryptsetup|kubeseal|openconnect|\bp4\b|env add|wrangler|ansible-vault|unlock)",
            "base64": r"(?i:echo|printf|<<<)\s+(?:-\w+\s+)?[\"']?(?P<secret>[A-Za-z0-9+/]{12,4000}+={0,2})[\"']?\s{0,3}\|\s{0,3}base64\s+(?:-d|-D|--decode)",
            "-auth|-a |--auth": r"(?<!\S)(?:-a|-A|-auth|--auth|--proxy-auth)(?:=|\s+)[\"']?[\w.@-]{1,60}:(?P<secret>[^\s\"'\[/]{3,200}+)",
            "@": r"(?m)^[ \t]{0,4}(?:\[?[\w.*-]{3,80}\]?(?::\d{2,5})?[ \t:]{1,8})[\w.+-]{1,60}@[\w.-]{3,80}:(?P<secret>[^\s:/]{4,200}+)[ \t]{0,4}$",
            " * |\t*|  *": r"(?m)^[ \t]{0,4}\"?[\w.@\\-]{2,60}\"?[ \t]{1,20}(?:\*|[\w.-]{2,40})[ \t]{1,20}\"?(?P<secret>[^\s\"*#]{4,100}+)\"?[ \t]{1,20}\*[ \t]{0,4}$",
            '" "': r"(?m)^\"[\w.@-]{1,60}\"[ \t]{1,4}\"(?P<secret>[^\"\n]{4,200}+)\"[ \t]{0,4}$",
        },
    ),
    *rules(
        Fit.MIXED,
        {
            "user ": r"(?i:\b(?:samba-tool user (?:create|add|setpassword)|user create|ejabberdctl (?:register|change_password)|prosodyctl register|rabbitmqctl \w{3,20}|net user|dscl \. -passwd))\s+\S{1,80}\s+(?:\S{1,60}\s+)?(?!-)VALUE",
            "password|secret|key|psk": r"(?im:^\s{0,8}(?:set|unset|edit|ip|tacacs-server|radius-server|aaa|key|ppp|username|local-user|snmp-agent|security|neighbor|wpa-psk|wpa2-psk)\b[^\n]{0,80}?(?:password|passwd|secret|key|psksecret|psk|plain-text-password-value|pre-shared-key|community))\s+(?:(?:cipher|simple|ascii|ENC|irreversible-cipher|plaintext|hex|0|5|7|8|9|md5|sha)\s+)?[\"']?(?P<secret>[^\s\"';=]{5,200}+)[\"']?;?\s*(?:$|\n)",
            "cleartext|plaintext": r"(?i:\b(?:cleartext|plaintext))[ \t]{1,3}\"?(?P<secret>[^\s\"]{3,100}+)",
            " * |\t*|  *": r"(?m)^[ \t]{0,4}\"?[\w.@\\-]{2,60}\"?[ \t]{1,20}\*[ \t]{1,20}\"?(?P<secret>[^\s\"*#]{4,100}+)\"?[ \t]{0,4}$",
        },
    ),
    *rules(
        Fit.PRINTED,
        {
            "\n": r"(?m)^[ \t]{0,8}(?:\S{0,60}[$#%>][ \t]{1,2}|[$#%>][ \t]{0,2})?(?:sudo |docker exec \S{1,40} )?PRINTING[ \t]{0,4}\n{1,2}[ \t]{0,8}(?P<secret>[^\s\"'`-][^\s\"'`]{5,4000}+)[ \t]{0,4}$",
        },
        PRINTING=_PRINTING,
    ),
)
