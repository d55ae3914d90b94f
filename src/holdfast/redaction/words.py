"""Words for secrets, and the links between such a word and its value, in many languages. Pure, no I/O."""

from __future__ import annotations

PASSWORDS = (
    r"passwords?|passwd|passphrase|passcode|passwort|kennwort|pwd|pw|mdp|wpa[23]? key|mot de passe|contraseña|contrasena|palabra clave|clave(?! api| secreta| p[úu]blica)"
    r"|senha|palavra-passe|hasło|haslo|wachtwoord|parola(?: d'ordine|sı|nız)?|parolă|lösenord(?:et)?|şifre(?:si|niz)?|sifre|salasana|heslo|adgangskode[nr]?|passord(?:et)?"
    r"|jelsz[óo]|парол[ьяю]|parole|kata sandi|geslo|lozinka|slaptažodis|kodeordet?|parool|lykilorðið?|contrasenya|contrasinal|wagwoord|nenosiri|pasahitza|cyfrinair|pasvorto|kata laluan|kata sandinya|лозинка|паролата|db pass|wi-?fi (?:key|code)|wlan[ -](?:key|schlüssel)|network key|zugangscode"
)
PASSWORDS_WITHOUT_SPACES = (
    r"密码|密碼|口令|パスワード|暗証番号|비밀번호|암호는|mật khẩu|κωδικός|סיסמה|كلمة المرور|كلمة السر|पासवर्ड|รหัสผ่าน"
)
"""In these languages the word needs no space before it."""
KEYS = (
    r"(?:api|access|secret|private|auth|signing|encryption|license|deploy|shared|master|service)[ -](?:key|token)|token|secret|api-?key|credentials?"
    r"|(?:api|zugangs|geheim)?-?schlüssel|clé(?: api| d'api| secrète| privée)?|clave(?: api| secreta)|chave(?: api| secreta)?|chiave(?: api| segreta)?|jeton|токен|密钥|令牌|ключ"
    r"|klucz(?: api)?|sleutel|nyckel|anahtar[ıi]?|api키|apiキー"
)
PROSE_BEGINNINGS = (
    "pass", "kennwort", "pwd", "pw", "mdp", "wpa", "mot de passe", "contrase", "palabra clave", "clave", "senha", "palavra-passe", "has", "wachtwoord", "parol", "lösenord",
    "şifre", "sifre", "salasana", "heslo", "adgangskode", "jelsz", "парол", "密", "口令", "パスワード", "暗証番号", "비밀번호", "암호는", "mật khẩu", "κωδικός", "סיסמה",
    "كلمة المرور", "كلمة السر", "पासवर्ड", "รหัสผ่าน", "kata sandi", "geslo", "kodeord", "lykilor", "wagwoord", "nenosiri", "pasahitz", "cyfrinair", "pasvorto", "kata laluan", "лозинк", "db pass", "비번", "암호", "合言葉", "lozinka", "slapta", "wifi ", "wi-fi ", "wlan", "network key", "zugangs", "geheim",
    "api", "access", "secret", "private", "auth", "signing", "encryption", "license", "deploy", "shared", "master", "service", "token", "credential", "schlüssel",
    "-schlüssel", "clé", "chave", "chiave", "jeton", "токен", "令牌", "ключ", "klucz", "sleutel", "nyckel", "anahtar",
)  # fmt: skip
"""Every match begins with one of these, in lower case."""
FOREIGN = (
    "passwort", "kennwort", "losungswort", "zugangscode", "wachtwoord", "paswoord", "wagwoord", "mot de passe", "mdp", "contraseña", "contrasena", "contrasenya", "contrasinal", "palabra clave",
    "senha", "palavra-passe", "palavra passe", "parola", "parolă", "parolei", "hasło", "hasła", "haslo", "heslo", "hesla", "jelszó", "jelszava", "jelszo", "парол", "лозинк", "lozink", "šifra je",
    "geslo", "gesla", "slaptažod", "parole ", "parool", "salasana", "lösenord", "losenord", "passord", "adgangskode", "kodeord", "lykilorð", "şifre", "sifre", "κωδικ", "συνθηματικ", "סיסמ", "كلمة المرور", "كلمة السر",
    "كلمة سر", "رمز عبور", "گذرواژه", "पासवर्ड", "পাসওয়ার্ড", "கடவுச்சொல்", "పాస్‌వర్డ్", "پاس ورڈ", "รหัส", "mật khẩu", "kata sandi", "sandi", "kata laluan", "nenosiri", "ang password", "pasahitz", "pasfhocal", "cyfrinair",
    "pasvorto", "fjalëkalim", "գաղտնաբառ", "პაროლ", "құпиясөз", "密码", "密碼", "口令", "パスワード", "合言葉", "暗証", "비밀번호", "비번", "암호", "clé api", "clave", "chiave", "clé secrète", "api-schlüssel", "geheimnis",
    "credenziali", "identifiants", "credenciales", "credenciais", "zugangsdaten", "anmeldedaten", "inloggegevens", "dane logowania", "přihlašovací", "учётные данные", "доступ:", "ключ api", "секрет", "токен",
)  # fmt: skip
"""Words for a secret in languages other than English: in code or logs they almost always mean a real secret."""
LINKS = (
    r"is|was|are|be|to|as|ist|lautet|war|ist jetzt|heißt|es|est|sera|era|è|é|jest|är|er|on|to jest|будет|это|for now is|equals|became|becomes|stays"
    r"|je|là|είναι|היא|הוא|este|to je|fue|foi|était|olarak|adalah|ialah|है|คือ|هي|هو|became|now|nun|bleibt|wurde|sind|zijn|são|sono|son|set to|auf|és|ir|yra|ay|ni|estas|е|је|brzmi|zní|gewijzigd in|changé en|alterada para|cambiado a"
)
