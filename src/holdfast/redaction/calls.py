"""Rules for keys and passwords in function calls, and for private keys by the word beside them. Pure, no I/O."""

from __future__ import annotations

from holdfast.redaction.rule import Fit, rules

_HEX = r"(?P<secret>(?:0x)?[0-9a-fA-F]{64}(?:[0-9a-fA-F]{64})?)(?![0-9a-zA-Z])"
_ARGUMENT = r"(?:[\"'`][^\"'`\n]{0,200}[\"'`]|[$\w.\[\]()]{1,60})"

RULES = (
    *rules(
        Fit.ANY,
        {
            "wallet|key(|key2|account|broadcast|addr(|signer": r"(?i:wallet|from_?key|toaccount|tosigner|startbroadcast|broadcast|vm\.addr|signer|keypair|importprivkey|importkey|loadprivatekey)\w{0,20}\(\s{0,4}[\"'`]?HEX",
            "accounts": r"(?i:accounts)[\"']?\s{0,3}[:=]\s{0,3}\[\s{0,4}(?:[\"']\[redacted\][\"']\s{0,3},\s{0,4}){0,20}[\"'`]HEX",
            "ate key|ate_key|atekey|ret key|ret_key|retkey|nd key|nd_key|ew key|ing key|ing_key|tion key|tion_key|ter key|ter_key|priv|unseal|seed|ot key": r"(?i:(?:private|secret|spend|view|signing|encryption|decryption|master|priv|unseal|root|seed)[ _-]?keys?)\b[^\n]{0,30}(?:\n[=\s-]{0,60}\n?)?(?:\(\d{1,2}\)\s)?(?<![\w])HEX",
            "(0) 0x|(1) 0x|(2) 0x|) 0x": r"(?m)^\(\d{1,2}\)\s{1,3}(?P<secret>0x[0-9a-f]{64})(?!\w)",
            "key": r"(?i:key\w{0,10})\s{0,3}[:=]{1,2}\s{0,3}[^\n\"'=]{0,40}(?i:hex|decode|byte|from)\w{0,10}\(\s{0,3}b?[\"'](?P<secret>[0-9a-fA-F]{32,128}|[A-Za-z0-9+/_-]{40,100}={0,2})[\"']",
            "encryptbypassphrase": r"(?i:(?:en|de)cryptbypassphrase)\(\s{0,3}N?'(?P<secret>[^'\n]{3,200}+)'",
            "jdbc:|dbi:|mysql:|pgsql:|odbc:|dsn=": r"[\"'](?:jdbc|dbi|mysql|pgsql|odbc|sqlsrv|oci|DSN)[:=][^\"'\n]{0,200}[\"']\s{0,3},\s{0,4}[\"'][^\"'\n]{1,60}[\"']\s{0,3},\s{0,4}[\"'](?P<secret>[^\"'\n]{2,200}+)[\"']",
            "connect(": r"(?i:\bconnect)\(\s{0,4}[\"'][^\"'\n]{1,100}[\"']\s{0,3},\s{0,3}\d{1,5}\s{0,3},\s{0,3}[\"'][^\"'\n]{1,60}[\"']\s{0,3},\s{0,3}[\"'](?P<secret>[^\"'\n]{3,200}+)[\"']",
            "private-|secret-|token-|key-": r"/(?:private|secret|token|key|auth|user)-(?P<secret>[a-f0-9]{24,64}|(?=[A-Za-z_]{0,30}\d)[A-Za-z0-9_]{24,80})(?![\w-])",
            "[": r"\[\s{0,3}(?P<secret>(?:\d{1,3},\s{0,3}){63}\d{1,3})\s{0,3}\]",
            "secret|private|key": r"(?i:(?:secret|private)\w{0,12})[^\n\[]{0,40}\[\s{0,3}(?P<secret>(?:\d{1,3},\s{0,3}){31}\d{1,3})\s{0,3}\]",
            "privkey|wif|private key|privatekey|private_key|import": r"(?i:privkey|\bwif\b|private|\bkey\b)[^\n]{0,40}?[\s\"'(:=](?P<secret>[KLc5][1-9A-HJ-NP-Za-km-z]{50,51})(?![A-Za-z0-9])",
        },
        HEX=_HEX,
    ),
    *rules(
        Fit.STRONG,
        {
            "cookieparser|cookiesession|keygrip|secretkeyspec|securecookie|sessionstore|cookiestore|newcookiestore": r"(?i:cookieparser|keygrip|secretkeyspec|securecookie\w{0,10}|cookiestore|\w{0,10}sessionstore)(?:\.new)?\(\s{0,3}\[?(?:\[\]byte\()?b?[\"'](?P<secret>[^\"'\s]{5,200}+)[\"']",
            "_encrypt|_decrypt|encrypt(|decrypt(": r"(?i:(?:pgp_sym|aes|des)_?(?:en|de)crypt(?:_bytea)?|encryptbypassphrase|cryptojs\.\w{2,10}\.(?:en|de)crypt)\(\s{0,3}ARGUMENT\s{0,3},\s{0,3}[\"'](?P<secret>[^\"'\n]{4,200}+)[\"']",
            "ldap_bind|_bind(|ftp_login|imap_open|ssh2_auth|_login(": r"(?i:\w{2,20}_(?:bind|login|open|auth_password))\(\s{0,3}ARGUMENT\s{0,3},\s{0,3}ARGUMENT\s{0,3},\s{0,3}[\"'](?P<secret>[^\"'\n]{4,200}+)[\"']",
            "pass|pwd|passwort": r"(?:write|send\w{0,8}|puts|print\w{0,4})\(\s{0,3}b?[\"'](?P<secret>[^\"'\s\\]{5,100}+)(?:\\r)?(?:\\n)?[\"']\s{0,3}\)?[^\n]{0,20}?(?:#|//)[^\n]{0,30}?(?i:pass|pwd)",
            "forkey": r"(?i:set)\(\s{0,3}[\"'](?P<secret>[^\"'\n]{4,200}+)[\"']\s{0,3},\s{0,3}(?:forKey|key):\s{0,3}[\"'][^\"'\n]{0,40}(?i:pass|pwd|token|secret)",
            ":auth(|.auth(": r"[.:]auth\(\s{0,3}(?:[\"'][\w.@-]{1,60}[\"']\s{0,3},\s{0,3})?[\"'](?P<secret>[^\"'\s]{4,200}+)[\"']",
            "://|/reset|/activate|/confirm|/verify|/invite": r"/(?:[\w-]{0,20}(?:reset|activat|confirm|verif|invit|unsubscribe|magic|recover|one-time|signin|login|accept)\w{0,10})/(?:[\w=%.@-]{1,60}/){0,3}(?P<secret>(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_=-]{16,400}+)/?(?=[\s\"'>)?]|$)",
            "ical|/feed|webcal|/rss|caldav": r"(?:/ical/|webcal://|/feeds?/|/rss/|/caldav/)[^\s\"'<>]{0,200}?[/=-](?P<secret>(?=[A-Za-z_]{0,30}\d)[A-Za-z0-9_]{20,200}+)(?=[/.&?\s]|$)",
            "oobcode|sig=|signature=|x-amz|_token=|token=|ticket=|code=|secret=|hmac=|access=|key=": r"(?i:[?&](?:oobcode|x-amz-(?:signature|security-token|credential)|x-goog-signature|hmac|signature|sig|st|ticket|code_verifier|invite|invitation|reset|confirmation|\w{0,20}_?(?:token|code|secret)))=(?P<secret>(?=[^\s&]{0,60}\d)[^\s&\"'#\[<>\\]{10,2000}+)",
        },
        ARGUMENT=_ARGUMENT,
    ),
    *rules(
        Fit.KEY,
        {
            "aes.|aes_|aes(|newcipher|createcipher|createdecipher|secretbox|chacha|fernet|blowfish|secretkey|signingkey|cipher(|des3|des.new": r"(?i:cipher\w{0,10}|\baes\w{0,12}|secretbox|chacha\w{0,16}|fernet|blowfish|\bdes3?|secretkey\w{0,8}|signingkey|symmetrickey)[.(][^\n\"']{0,60}?(?:[\"'](?:aes|des|chacha)[\w-]{2,24}[\"']\s{0,3},\s{0,4}[^\n\"']{0,40}?)?b?[\"'](?P<secret>[^\s\"']{8,200}+)[\"']",
            "hmac": r"(?i:hash_hmac|createhmac|hmac\.new|hmac_\w{2,12}|newhmac)\(\s{0,3}ARGUMENT\s{0,3},\s{0,3}(?:ARGUMENT\s{0,3},\s{0,3})?(?:\[\]byte\(|Buffer\.from\()?b?[\"'](?P<secret>[^\"'\s]{6,200}+)[\"']",
            "signwith|sign(|verify(|encode(|decode(": r"(?i:signwith|jwt\w{0,10}\.\w{2,16}|verifier|hmac\d{2,3})\(\s{0,3}(?:ARGUMENT\s{0,3},\s{0,3}){0,2}[\"'](?P<secret>[^\"'\s]{8,200}+)[\"']",
        },
        ARGUMENT=_ARGUMENT,
    ),
    *rules(
        Fit.PRINTED,
        {
            ":\n|: \n": r"(?im)(?:\bpass(?:word|wort|phrase|code)?|kennwort|secret|token|api key|secret key|access key|mot de passe|contraseña)\b[^\n]{0,60}:[ \t]{0,4}\n[ \t\n]{0,8}(?P<secret>(?![-#<{\[])[^\s\"'`]{8,200}+)[ \t]{0,4}$",
        },
    ),
)
