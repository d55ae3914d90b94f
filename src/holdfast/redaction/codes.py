"""Rules for codes, cards, phrases and passwords in messages between people, in many languages. Pure, no I/O."""

from __future__ import annotations

from holdfast.redaction.rule import Fit, rules

_CODE_WORDS = (
    r"(?:one[- ]?time|verification|security|confirmation|authentication|authenticator|auth|login|log-?in|sign-?in|access|sms|mfa|2fa|two-factor|otp|totp|entry|door|gate|alarm|unlock|pairing|activation|recovery|backup|reset|pin|safe|lock|garage|building)"
    r"[ -]?(?:code|pin|password|passcode|number|combination)s?"
    r"|(?:bestätigungs|sicherheits|verifizierungs|einmal|anmelde|zugangs|zutritts|freischalt|aktivierungs|tür|haustür|alarm|pin-|sms-|entsperr)-?(?:code|pin|nummer|passwort|kennwort)|(?:sms-?|mobile|push|chip)?tan|puk|pin|otp|passcode|passkey|mfa|2fa"
    r"|code (?:de |d')?(?:vérification|sécurité|confirmation|accès|pin|secret|d'accès|verificación|seguridad)|código (?:de )?(?:verificación|seguridad|confirmación|acceso|pin|verificação|segurança|confirmação|acesso)"
    r"|codice (?:di )?(?:verifica|sicurezza|conferma|accesso|pin)|kod (?:weryfikacyjny|pin|dostępu|sms)|verificatiecode|beveiligingscode|toegangscode|pincode|verifieringskod|säkerhetskod|bekræftelseskode|bekreftelseskode|vahvistuskoodi"
    r"|ověřovací kód|overovací kód|doğrulama kodu|onay kodu|mã (?:xác nhận|xác minh|otp)|kode (?:verifikasi|otp)|megerősítő kód|cod de verificare|код (?:подтверждения|доступа|из смс|безопасности|авторизации)|пин-?код|κωδικός επαλήθευσης"
    r"|(?:door|safe|lock|gate) (?:code|combination)"
)
_ASIAN_CODES = r"验证码|驗證碼|校验码|动态码|认证码|認証コード|確認コード|認証番号|暗証番号|ワンタイムパスワード|인증번호|인증 ?코드|보안 ?코드|비밀번호|PIN码|pin码|密码|密碼|रहस्य कोड|ओटीपी|रمز التحقق|رمز التحقق|رمز|קוד אימות|รหัส OTP|รหัสยืนยัน"
_DIGITS = r"(?P<secret>(?:[A-Z]-)?\d{4,10}#?(?![\w]|[.,]\d|[-/:]\d)|\d{3}[ -]\d{3}(?!\w|[ -]\d)|\d{2}-\d{2}-\d{2}(?![\w-])|\d{4}[ -]\d{4}(?!\w|[ -]\d))"
_IS = r"(?:is|was|ist|lautet|war|es|est|è|é|jest|är|er|on|je|to|este|e|là|adalah|olan|now|jetzt|now is|will be|wird|becomes)"
_PHRASE = (
    r"pass ?phrases?|pass-phrase|(?:secret|recovery|backup|seed|wallet|security|geheime?|wiederherstellungs) ?-?phrase|phrase (?:secrète|de passe|de récupération)|frase (?:de contraseña|secreta|segreta|de recuperación|di recupero|de acesso|semilla)"
    r"|fraza|kulcsmondat|lösenfras|adgangssætning|wachtwoordzin|passwortsatz|passsatz|парольная фраза|кодовая фраза"
)

RULES = (
    *rules(
        Fit.ANY,
        {
            "code is|code:|code |code lautet|code est|-code|pin |pin:|pin-|pin=|tan:|tan |puk|otp|mfa|2fa|passkey|passcode|código|codice|kod |kode|kód|koodi|kodu|код|combination|κωδ|mã |nummer|einmal|password: |password is": r"(?i:(?<![\w-])(?:CODE_WORDS))(?![^\W\d_])(?:[ \t]{1,2}(?:[^\s:=\d]{1,16}[ \t]{1,2}){0,5}?(?i:IS_WORD)[ \t]{0,2}:?|(?:[ \t]{1,2}[^\s:=\d]{1,16}){0,5}?[ \t]{0,2}[:=：]|[ \t]{0,2}(?:->|→|–|—|-))[ \t]{0,3}[\"'`*]{0,2}DIGITS",
            "pin |code |puk |tan |otp ": r"(?i:(?<![\w-])(?:(?:sim|door|card|karte|karten|ec-karte|gate|alarm|phone|handy|safe)[ -])?(?:pin|puk|otp|tan|(?:mfa|2fa|otp|sms|door|gate|alarm|verification|security|backup|recovery|login) code))[ \t]{1,2}[\"'`]?DIGITS",
            " is your| is the| ist dein| ist ihr| est votre| es tu| es su": r"(?<![\w.-])(?P<secret>(?:[A-Z]-)?\d{4,8})(?=\s(?i:is|ist|est|es|è) (?i:your|the|dein|ihr|votre|tu|su|il tuo)\s[^\n]{0,40}(?i:code|pin|otp|tan|passcode|código|codice))",
            "verif|confirm|log in|sign in|bestätig": r"(?i:\b(?:use|enter|type|gib|nutze|utilisez|usa))\s(?:code\s)?(?P<secret>(?:[A-Z]-)?\d{4,8})(?=\s(?i:to|as|zum|um|pour|para|per)\s(?:\w{1,12}\s){0,3}?(?i:verif|confirm|log|sign|authenti|bestätig|einlog|anmeld|your))",
            "验|驗|码|認証|確認|暗証|ワンタイム|인증|보안|비밀번호|密|कोड|ओटीपी|رمز|קוד|รหัส": r"(?:ASIAN_CODES)(?:[^\s\d:：=]{0,10})?\s{0,2}(?:[:：=是为為は가는은]|เป็น|คือ|है|هو)?\s{0,2}[「『\"']?(?P<secret>\d{4,10})(?!\d)",
            "phrase|frase|fraza|fras|фраза|satz|zin|mondat": (
                r"(?i:PHRASE_WORDS)\b[^\n\"'“„«]{0,60}?(?:\b(?i:IS_WORD)|[:=])[ \t]{0,3}(?:[\"“„«‘][ \u00a0]?(?P<secret>[^\"”“»\n<@]{6,200}+)(?=[\"”“»])|'(?P<single>[^'\n]{6,200}+)'(?!\w))",
                r"(?im)(?:PHRASE_WORDS)\b[^\n:\"']{0,40}[:=][ \t]{1,3}(?P<secret>(?:[^\W\d_]{2,14}[ -]){3,11}[^\W\d_]{2,14})[.]?[ \t]{0,3}$",
            ),
            "seed|mnemonic|phrase|wallet|metamask|ledger|trezor|words|wörter|recovery|mots|palabras": r"(?i:\b(?:seed|mnemonic|phrase|wallet|metamask|trezor|recovery|words|wörter|mots|palabras|\w{0,24}mnemonic|\w{0,24}phrase))\b[^\n]{0,30}?(?:\b(?:is|are|ist|lautet|sind|est|es|sont|son)[ \t]{0,2}:?|[:=(])[ \t]{0,3}[\"'`“„«]?(?P<secret>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})(?![a-z])",
            "mnemonic|seed|phrase": r"(?i:mnemonic|seed|phrase)\w{0,20}[\"'(\s:=]{1,6}(?P<secret>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?![a-z])",
            "12|1.": r"(?<![\w.])(?P<secret>1[.):][ \t]?[a-z]{3,8}[\s,]{1,3}(?:\d{1,2}[.):][ \t]?[a-z]{3,8}[\s,]{1,3}){10,22}\d{1,2}[.):][ \t]?[a-z]{3,8})(?![a-z])",
            "card|visa|cvv|cvc|master|amex|karte|carte|tarjeta|carta|cartão|prüf": r"(?i:\b(?:cvv2?|cvc2?|csc|cid|card verification|prüfziffer|prüfnummer|kartenprüfnummer|cryptogramme|código de seguridad))[\"']?\s{0,2}(?:is|ist|[:=])?\s{0,3}[\"']?(?P<secret>\d{3,4})(?!\w)",
            "u:|user:|u=|l:": r"(?i:(?<!\w)(?:u|l|user|usr|login|id|acc)\s?[:=]\s{0,2}\S{1,60}[\s,;/|]{1,4}(?:p|pw|pass|pwd|psw)\s?[:=]\s{0,2})[\"'`]?(?P<secret>[^\s\"'`,;]{3,100}+)",
            "wifi:": r"\bWIFI:[^\s]{0,120}?;P:(?P<secret>(?:[^;\s\\]|\\.){3,100}+)",
            "setup key|secret key|authenticator|manual entry": r"(?i:setup key|secret key|manual entry(?: key)?|authenticator(?: key)?)\s{0,2}(?:is|[:=])\s{0,3}(?P<secret>(?:[a-zA-Z2-7]{4}[ -]){3,15}[a-zA-Z2-7]{4})(?![\w-])",
            "security question|sicherheitsfrage|question secrète|pregunta de seguridad|secret answer": r"(?i:security question|sicherheitsfrage|question secrète|pregunta de seguridad|secret answer)[^\n]{0,60}?(?:\b(?:is|ist|est|es)|[:=])\s{0,3}[\"'“„«](?P<secret>[^\"'”“»\n]{2,80}+)",
            "<td": r"(?i:<t[dh][^<>]{0,60}>\s{0,4}(?:password|passwort|secret|token|pin|pwd|kennwort|passwd|api key)\s{0,2}:?\s{0,4}</t[dh]>\s{0,20}<td[^<>]{0,60}>\s{0,4}(?:<code>)?)(?P<secret>[^<>\s]{3,200}+)",
            "sk-|ghp_|xox|akia|aiza|glpat": r"[\"'](?P<secret>(?:sk-|ghp_|xox[bp]-|AKIA|AIza|glpat-)[\w-]{0,60}[\"']\s{0,3}[+.]\s{0,3}[\"'][\w-]{6,200}+)[\"']",
        },
        ASIAN_CODES=_ASIAN_CODES,
        CODE_WORDS=_CODE_WORDS,
        DIGITS=_DIGITS,
        IS_WORD=_IS,
        PHRASE_WORDS=_PHRASE,
    ),
    *rules(
        Fit.STRONG,
        {
            "key|token|schlüssel|clé|clave|chave|chiave": r"(?i:\b(?:key|token|secret|schlüssel|clé|clave|chave|chiave))\b\s(?:\w{1,12}\s){1,5}?(?:is|ist|est|es|è|é)\s[\"'`]?(?P<secret>(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_-]{16,200}+)(?![\w/])",
            "prompt|asks|password": r"(?i:\b(?:prompts?|asks|password)\b[^\n]{0,40}?\b(?:type|enter|give it|real one|correct one|right one)(?: is)?)\s[\"'`]?(?P<secret>(?=[a-z]{2,30}\d)[^\s\"'`,;()]{5,60}+)",
            "@": r"(?m)(?<![\w.])[\w.+-]{1,40}@[\w-]{1,40}(?:\.[\w-]{1,20}){1,4}:(?P<secret>(?=[^\s:/]{0,40}\d)[^\s:/,;\"'<>()]{6,60}+)(?=[\s,;\"'<>)]|$)(?!\s*->)",
            " from ": r"(?i:\b(?:changed?|rotated?|switch(?:ed)?|updated?)\b[^\n]{0,40}?\bfrom)\s[\"'`]?(?P<secret>[^\s\"'`,]{5,60}+)[\"'`]?(?=\sto\s[^\n]{1,60}\b(?i:password|passwort|pw|secret|token|passphrase)\b)",
            "from [redacted] to ": r"from \[redacted\] to [\"'`]?(?P<secret>[^\s\"'`,]{5,60}+)",
            '" +|\' +|\' .|" .|" &': r"(?i:pass(?:word|wd|phrase)?|secret|token|key|pwd|pw|\[redacted\][\"']?)\w{0,10}[\"']?\s{0,3}(?:[:=]{1,2}\s{0,3}\(?[\"'][^\"'\n]{1,80}[\"']\s{0,3})?[+.&]\s{0,3}[\"'](?P<secret>[^\"'\s]{2,200}+)[\"']",
            "= (": r"(?i:pass(?:word|wd|phrase)?|secret|token|key|pwd|pw)\w{0,10}\s{0,3}=\s{0,3}\(\s{0,20}[\"'][^\"'\n]{4,200}[\"']\s{1,40}[\"'](?P<secret>[^\"'\s]{4,200}+)[\"']",
            "fingerprint|alternate|p/w|p\\w": r"(?i:(?<!\w)p[/\\]w)\s{0,2}(?:is|[:=])?\s{0,3}(?P<secret>[^\s\"'`,;]{4,100}+)",
        },
    ),
    *rules(
        Fit.MIXED,
        {
            "creds|credential|login|zugang|account|konto|access|identifiants|credenciales|ssh|user:|username:|anmeldung|доступ|dostęp|přístup|acces": r"(?i:\b(?:creds?|credentials?|logins?|zugang(?:sdaten)?|account|konto|access|identifiants|credenciales|acceso|accesso|ssh|user(?:name)?|anmeldung|dostęp|přístup|доступ))\b[^\n:]{0,60}[:=][ \t]{0,3}[\"'`]?[\w.@+-]{1,60}[\"'`]?[ \t]{0,2}(?:/|\||,|;|:|[ \t]-[ \t]|[ \t]{1,3}(?:and|und|et|y|e|with|mit)[ \t])[ \t]{0,2}[\"'`]?(?P<secret>[^\s\"'`,;:]{5,100}+)",
            "type |give it|enter |prompts|asks": r"(?i:\b(?:prompts?|asks?|asked|wants?)\b[^\n]{0,40}?\b(?:type|enter|give it|use|say|answer|put|tell it))\s(?:in\s)?[\"'`]?(?P<secret>[^\s\"'`,;()]{5,60}+)",
        },
    ),
    *rules(
        Fit.CARD,
        {
            "card|visa|cvv|cvc|master|amex|karte|carte|tarjeta|carta|cartão|pan ": r"(?<![\w.-])(?P<secret>[3-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5})(?![\w-])",
        },
    ),
)
