"""What real tools print, and which errors were really met there: compilers, tests, linters, reviews, listings.

Most texts were printed by the tools themselves and shortened. `met` is the truth: the errors that a program ran into,
as somebody who reads the output would say. Every other name of an error in the text is one that only stands there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """The answer of one tool."""

    name: str
    command: str
    """What was run; for another tool than the shell, what it was about."""
    text: str
    failed: bool = False
    met: frozenset[str] = frozenset()
    tool: str = "Bash"
    shown: tuple[str, ...] = ()
    """Files of the project that it shows."""
    hidden: bool = False
    """It failed, and a pipe hides that."""
    interrupted: bool = False
    """The user ended it."""

    @property
    def fails(self) -> bool:
        """Whether the command failed, whatever its exit status."""
        return (self.failed or self.hidden) and not self.interrupted


def _met(*names: str) -> frozenset[str]:
    return frozenset(names)


PYTEST = """\
.F                                                                       [100%]
=================================== FAILURES ===================================
____________________________________ test_b ____________________________________

    def test_b():
        try:
>           look(1)

test_f.py:17:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

x = 1

    def look(x):
        \"\"\"Look.

        Raises:
            ValueError: If it is negative.
        \"\"\"
        if x < 0:
            raise ValueError("negative")
>       return {}["heron"]
               ^^^^^^^^^^^
E       KeyError: 'heron'

test_f.py:11: KeyError
=========================== short test summary info ============================
FAILED test_f.py::test_b - KeyError: 'heron'
1 failed, 1 passed, 1 deselected in 0.33s"""

TRACEBACK = """\
Traceback (most recent call last):
  File "/p/app.py", line 9, in <module>
    raise ConfigError("no fence") from error
app.errors.ConfigError: no fence"""

GCC = """\
a.cpp: In function 'int main()':
a.cpp:3:20: error: 'ParsError' was not declared in this scope; did you mean 'ParseError'?
    3 | int main() { throw ParsError("x"); HttpException e; return 0; }
      |                    ^~~~~~~~~
      |                    ParseError
a.cpp:3:36: error: 'HttpException' was not declared in this scope"""

CLANG = """\
main.cc:12:9: error: no member named 'TimeoutError' in namespace 'net'
   12 |   throw net::TimeoutError("late");
      |         ~~~~~^
main.cc:20:12: warning: exception of type 'ParseError' will be caught by earlier handler [-Wexceptions]
1 warning and 1 error generated."""

RUSTC = """\
   Compiling fence v0.1.0 (/p/fence)
error[E0271]: type mismatch resolving `<i32 as FromStr>::Err == ConfigError`
 --> src/lib.rs:3:64
  |
3 | pub fn n(s: &str) -> Result<i32, ConfigError> { let x: i32 = s.parse()?; Ok(x) }
  |                                                                ^^^^^ expected `ConfigError`, found `ParseIntError`

error[E0277]: `?` couldn't convert the error to `ConfigError`
  |
  = note: the trait `From<std::num::ParseIntError>` is not implemented for `ConfigError`
error: could not compile `fence` (lib) due to 2 previous errors"""

CARGO_TEST = """\
running 2 tests
test parse_error_tests::ok ... ok
test parse_error_tests::returns_parse_int_error ... FAILED

failures:

---- parse_error_tests::returns_parse_int_error stdout ----

thread 'parse_error_tests::returns_parse_int_error' (2136) panicked at src/lib.rs:1:38:
called `Result::unwrap()` on an `Err` value: ParseIntError { kind: InvalidDigit }
stack backtrace:
   3: core::result::Result<T,E>::unwrap
             at /rustc/59807616/library/core/src/result.rs:1233:23

failures:
    parse_error_tests::returns_parse_int_error

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.40s"""

CARGO_RUN = """\
    Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.03s
     Running `target/debug/fence`
Error: LoadError { path: "fence.toml", source: Os { code: 2, kind: NotFound, message: "No such file" } }"""

CARGO_PASSES = """\
running 3 tests
test errors::tests::config_error_has_a_source ... ok
test errors::tests::ParseError_is_shown ... ok
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"""

TSC = """\
src/api.ts(37,24): error TS2304: Cannot find name 'ValidationError'.
src/api.ts(41,9): error TS2345: Argument of type 'HttpError' is not assignable to parameter of type 'ApiError'.
  Property 'status' is missing in type 'HttpError' but required in type 'ApiError'."""

TSC_PRETTY = """\
src/app.ts:3:11 - error TS2552: Cannot find name 'NotFoundErorr'. Did you mean 'NotFoundError'?

3 throw new NotFoundErorr("x");
            ~~~~~~~~~~~~~

  src/errors.ts:1:14
    1 export class NotFoundError extends Error {}
                   ~~~~~~~~~~~~~
    'NotFoundError' is declared here.

Found 1 error in src/app.ts:3"""

GO_VET = """\
# example.org/fence
./gate.go:14:9: undefined: NewSilentError
./gate.go:22:2: result of (*PathError).Unwrap call not used"""

GO_TEST = """\
--- FAIL: TestOpenReturnsPathError (0.00s)
    gate_test.go:21: Open("x"): got nil, want a *fs.PathError
--- PASS: TestNewSilentError (0.00s)
FAIL
FAIL	example.org/fence/gate	0.004s
ok  	example.org/fence/post	0.002s"""

GO_PANIC = """\
panic: runtime error: index out of range [3] with length 3

goroutine 1 [running]:
main.NewSilentError(...)
	/p/gate.go:12
exit status 2"""

JAVAC = """\
F.java:3: error: cannot find symbol
 public static void main(String[] a) { r(); ParseException p; } }
                                            ^
  symbol:   class ParseException
  location: class F
F.java:7: error: unreported exception IOException; must be caught or declared to be thrown
2 errors"""

JAVA = """\
Exception in thread "main" java.lang.IllegalStateException: no fence
	at G.main(G.java:1)
Caused by: java.lang.NumberFormatException: For input string: "x"
	at java.base/java.lang.NumberFormatException.forInputString(NumberFormatException.java:67)
	... 1 more"""

SUREFIRE = """\
[INFO] Running org.example.FenceTest
[ERROR] Tests run: 2, Failures: 0, Errors: 1, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE!
org.example.FenceTest.mends  Time elapsed: 0.01 s  <<< ERROR!
java.lang.NullPointerException
	at org.example.Fence.mend(Fence.java:12)
[INFO] BUILD FAILURE"""

JEST = """\
 FAIL  src/cart.test.ts
  Cart
    ✓ throws RangeError for a negative count (2 ms)
    ✕ adds up (3 ms)

  ● Cart › adds up

    TypeError: Cannot read properties of undefined (reading 'price')

      10 |   it("throws ValidationError when empty", () => {
    > 11 |     throw new CartError(items[0].price);
         |                                  ^

      at total (src/cart.ts:11:34)

Test Suites: 1 failed, 3 passed, 4 total
Tests:       1 failed, 12 passed, 13 total"""

JEST_PASSES = """\
  console.error
    Error: Uncaught [TypeError: boom]
        at reportException (node_modules/jsdom/lib/jsdom/living/helpers/runtime-script-errors.js:66:24)

    TypeError: boom
      at Boundary (src/boundary.test.tsx:9:11)

 PASS  src/boundary.test.tsx
Test Suites: 1 passed, 1 total
Tests:       2 passed, 2 total"""

MOCHA = """\
  HttpError
    ✔ has a status
  Client
    1) retries after a TimeoutError

  1 passing (15ms)
  1 failing

  1) Client
       retries after a TimeoutError:

      AssertionError [ERR_ASSERTION]: expected 2 to equal 3
      + expected - actual

      at Context.<anonymous> (test/client.spec.js:7:20)"""

MOCHA_PASSES = """\
  ParseError
    ✔ names the line
    ✔ is an instance of SyntaxError
  ValidationError
    ✔ lists the fields

  3 passing (8ms)"""

NODE = """\
/p/n.js:2
function f(u){ return u.id }
                        ^

TypeError: Cannot read properties of undefined (reading 'id')
    at f (/p/n.js:2:25)
    at Object.<anonymous> (/p/n.js:3:1)

Node.js v20.20.2"""

NODE_CAUSE = """\
TypeError: fetch failed
    at node:internal/deps/undici/undici:13392:13 {
  [cause]: ConnectTimeoutError: Connect Timeout Error
      at onConnectTimeout (node:internal/deps/undici/undici:2350:28) {
    code: 'UND_ERR_CONNECT_TIMEOUT'
  }
}"""

NODE_TEST = """\
# Subtest: throws a RangeError for 0
ok 1 - throws a RangeError for 0
# Subtest: adds
not ok 2 - adds
  ---
  failureType: 'testCodeFailure'
  code: 'ERR_ASSERTION'
  name: 'AssertionError'
  ...
# pass 1
# fail 1"""

RUFF = """\
l.py:1:20: F401 [*] `errors.ParseError` imported but unused
l.py:1:32: F401 [*] `errors.HttpError` imported but unused
l.py:2:7: N818 Exception name `Silent` should be named with an Error suffix
l.py:5:15: F821 Undefined name `NotFoundError`
Found 4 errors.
[*] 2 fixable with `--fix`."""

RUFF_FULL = """\
F821 Undefined name `NotFoundError`
 --> l.py:5:15
  |
3 | def f():
4 |     try:
5 |         raise NotFoundError("x")
  |               ^^^^^^^^^^^^^
6 |     except KeyError:
7 |         raise ValueError("y")
  |
Found 1 error."""

MYPY = """\
app.py:3: error: Name "TimeoutErorr" is not defined  [name-defined]
app.py:9: error: Exception type "HttpError" must derive from BaseException  [misc]
app.py:9: note: Did you mean "HTTPException"?
Found 2 errors in 1 file (checked 4 source files)"""

ESLINT = """\
/p/src/api.ts
   3:10  error    'ValidationError' is defined but never used  @typescript-eslint/no-unused-vars
  14:11  error    Expected an error object to be thrown: ApiError  no-throw-literal
  20:3   warning  Unexpected console statement                no-console

✖ 3 problems (2 errors, 1 warning)"""

SHELLCHECK = """\
In deploy.sh line 7:
trap 'onError ParseError' ERR
      ^-----^ SC2317 (info): Command appears to be unreachable.

For more information:
  https://www.shellcheck.net/wiki/SC2317"""

REVIEW = """\
## Review of #214

**Blocking**
- `parse()` swallows `ValueError`: a caller cannot tell a bad date from a missing one.
- TimeoutError: not retried in `fetch()`, although the docs promise it.

**Nits**
- `NewSilentError` is exported and used by nobody.
ConnectionError: please document when it is raised.
Consider wrapping it in a `ServiceError`."""

LISTING = """\
src/errors/ApiError.ts
src/errors/HttpError.ts
src/errors/ParseError.ts
src/errors/index.ts"""

GREP = """\
src/errors.py:3:class FenceError(Exception):
src/errors.py:9:class GateError(FenceError):
src/gate.py:14:        raise GateError("locked")
src/gate.py:31:    except (KeyError, ValueError) as error:
docs/errors.md:7:TimeoutError: raised when nobody answers"""

DOCSTRING = """\
def look(x: int) -> int:
    \"\"\"Look for it.

    Raises:
        ValueError: If x is negative.
        LookupError: If there is none.
    \"\"\"
    if x < 0:
        raise ValueError(x)"""

DOCUMENTATION = """\
# Errors

Every error derives from `FenceError`.

ParseError: the file is no fence.
GateError: the gate is locked.

    Traceback (most recent call last):
    fence.errors.GateError: locked"""

GIT_LOG = """\
3f78685 Raise GateError instead of RuntimeError
c93e5b9 TypeError: mend the call in look()"""

DIFF = """\
-    except KeyError:
-        raise ValueError("x")
+TypeError: this line was a comment
+    except LookupError as error:"""

HELP = """\
usage: fence [--on-error {ignore,ParseError,GateError}] FILE
  --strict      raise a ValidationError for every unknown field"""

DOCKER_LOGS = """\
2026-01-31 12:00:01,100 INFO app: serving
2026-01-31 12:00:04,100 ERROR app: request failed
Traceback (most recent call last):
  File "/srv/app.py", line 3, in handle
    raise PoolError("exhausted")
psycopg.pool.PoolError: exhausted"""

LOG_FILE = """\
2026-01-31 12:00:04,100 ERROR app - MigrationError: column "height" is missing
2026-01-31 12:00:05,100 INFO app - tried again"""

RUBY = """\
app.rb:3:in `mend': undefined method `height' for nil:NilClass (NoMethodError)
	from app.rb:7:in `<main>'"""

PHP = "PHP Fatal error:  Uncaught TypeError: mend(): Argument #1 must be of type int, null given in /p/a.php:3"

AWS = "An error occurred (ResourceNotFoundException) when calling the GetItem operation: Requested resource not found"

CPP_ABORT = """\
terminate called after throwing an instance of 'ParseError'
  what():  bad token
Aborted (core dumped)"""

UNITTEST = """\
E.
======================================================================
ERROR: test_gate (tests.GateErrorTest.test_gate)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/p/tests.py", line 8, in test_gate
    self.gate.open()
AttributeError: 'NoneType' object has no attribute 'open'

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (errors=1)"""

IMPORT_ERROR = """\
==================================== ERRORS ====================================
ImportError while importing test module '/p/tests/test_gate.py'.
Hint: make sure your test modules/packages have valid Python names.
tests/test_gate.py:1: in <module>
    from fence.errors import GateError
E   ModuleNotFoundError: No module named 'fence'
=========================== short test summary info ============================
ERROR tests/test_gate.py
1 error in 0.12s"""

PIPED_PYTEST = """\
E       OSError: [Errno 28] No space left on device
FAILED tests/test_disk.py::test_writes - OSError: [Errno 28] No space left on device
1 failed, 41 passed in 2.10s"""

SCRIPT_LISTS = """\
KeyError
ValueError
GateError"""

VITEST = """\
 ❯ test/gate.test.ts (3)
   ✓ GateError > has a name
   × opens

 FAIL  test/gate.test.ts > opens
AssertionError: expected 'shut' to be 'open' // Object.is equality
 ❯ test/gate.test.ts:9:24
      8|   // a LockError would be thrown here
      9|   expect(gate.state).toBe("open")

 Test Files  1 failed | 2 passed (3)"""

GRADLE = """\
> Task :compileJava FAILED
/p/src/main/java/Fence.java:12: error: incompatible types: FenceException cannot be converted to IOException
        throw new FenceException("x");
FAILURE: Build failed with an exception.
* Exception is:
org.gradle.api.tasks.TaskExecutionException: Execution failed for task ':compileJava'.
	at org.gradle.api.internal.tasks.execution.CatchExceptionTaskExecuter.execute(CatchExceptionTaskExecuter.java:36)"""

BROWSER = """\
[console.error] vendor.js:8 Uncaught ReferenceError: runtime is not defined
[console.log] registered handlers: TimeoutError, AbortError"""

INTERNAL = """\
INTERNALERROR> Traceback (most recent call last):
INTERNALERROR>   File "/p/.venv/lib/_pytest/main.py", line 324, in _main
INTERNALERROR>     raise UsageError("x")
INTERNALERROR> AttributeError: 'Config' object has no attribute 'gate'"""

EXCEPTION_GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/p/eg.py", line 4, in main
  |     raise me from None
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/p/eg.py", line 2, in a
    |     async def a(): raise ValueError("bad")
    | ValueError: bad
    +------------------------------------"""

INTERRUPTED = "Exit code 137\nTimeoutError: still waiting\n[Request interrupted by user for tool use]"

TOOL_USE_ERROR = "<tool_use_error>InputValidationError: Edit failed: old_string is missing</tool_use_error>"

OUTPUTS: tuple[Output, ...] = (
    Output("gcc", "g++ a.cpp", GCC, True),
    Output("clang", "clang++ main.cc", CLANG, True),
    Output("rustc", "cargo build", RUSTC, True),
    Output("cargo test", "cargo test", CARGO_TEST, True, _met("ParseIntError")),
    Output("cargo run", "cargo run", CARGO_RUN, True, _met("LoadError")),
    Output("cargo test passes", "cargo test --lib", CARGO_PASSES),
    Output("tsc", "npx tsc --noEmit", TSC, True),
    Output("tsc pretty, piped", "npx tsc -p . | head -30", TSC_PRETTY, hidden=True),
    Output("go vet", "go vet ./...", GO_VET, True),
    Output("go test", "go test ./...", GO_TEST, True),
    Output("go panic", "go run .", GO_PANIC, True),
    Output("javac", "javac F.java", JAVAC, True),
    Output("java", "java G", JAVA, True, _met("IllegalStateException", "NumberFormatException")),
    Output("surefire", "mvn -q test", SUREFIRE, True, _met("NullPointerException")),
    Output("jest", "npx jest src/cart.test.ts", JEST, True, _met("TypeError")),
    Output("jest passes", "npx jest src/boundary.test.tsx", JEST_PASSES),
    Output("mocha", "npx mocha", MOCHA, True, _met("AssertionError")),
    Output("mocha passes", "npx mocha test/errors.spec.js", MOCHA_PASSES),
    Output("node", "node n.js", NODE, True, _met("TypeError")),
    Output("node with a cause", "node fetch.js", NODE_CAUSE, True, _met("TypeError", "ConnectTimeoutError")),
    Output("node --test", "node --test", NODE_TEST, True, _met("AssertionError")),
    Output("pytest", "python -m pytest -q", PYTEST, True, _met("KeyError")),
    Output(
        "pytest, piped",
        "pytest -q tests/test_disk.py 2>&1 | tail -3",
        PIPED_PYTEST,
        False,
        _met("OSError"),
        hidden=True,
    ),
    Output("pytest cannot import", "pytest -q tests/test_gate.py", IMPORT_ERROR, True, _met("ModuleNotFoundError")),
    Output("unittest", "python -m unittest", UNITTEST, True, _met("AttributeError")),
    Output("traceback", "python app.py", TRACEBACK, True, _met("ConfigError")),
    Output("ruff", "ruff check --output-format concise", RUFF, True),
    Output("ruff full", "ruff check l.py", RUFF_FULL, True),
    Output("mypy", "mypy app.py", MYPY, True),
    Output("eslint", "npx eslint src", ESLINT, True),
    Output("shellcheck", "shellcheck deploy.sh", SHELLCHECK, True),
    Output("review by an agent", "", REVIEW, tool="Agent"),
    Output("review on GitHub", "gh pr view 214 --comments", REVIEW),
    Output("listing", "ls src/errors/*.ts", LISTING),
    Output("found files", "find src -name '*Error*'", LISTING),
    Output("grep", "grep -rn Error src docs", GREP),
    Output("grep with a missing folder", "grep -rn Error src docs lib", GREP, True),
    Output("search of Claude Code", "", GREP, tool="Grep"),
    Output("source shown", "sed -n '1,40p' look.py", DOCSTRING, shown=("look.py",)),
    Output("source read", "/p/look.py", DOCSTRING, tool="Read"),
    Output("documentation shown", "cat docs/errors.md", DOCUMENTATION, shown=("docs/errors.md",)),
    Output("documentation fetched", "https://example.org/errors", DOCUMENTATION, tool="WebFetch"),
    Output("git log", "git log --oneline -5", GIT_LOG),
    Output("git diff", "git diff HEAD~1", DIFF),
    Output("help", "fence --help", HELP),
    Output("a script that lists names", "python list_errors.py", SCRIPT_LISTS),
    Output("container's log", "docker logs web --tail 20", DOCKER_LOGS, False, _met("PoolError")),
    Output("log file", "tail -20 logs/app.log", LOG_FILE, False, _met("MigrationError"), shown=("logs/app.log",)),
    Output("ruby", "ruby app.rb", RUBY, True, _met("NoMethodError")),
    Output("php", "php a.php", PHP, True, _met("TypeError")),
    Output("aws", "aws dynamodb get-item --table-name fence", AWS, True, _met("ResourceNotFoundException")),
    Output("c++ abort", "./b", CPP_ABORT, True, _met("ParseError")),
    Output("vitest", "npx vitest run", VITEST, True, _met("AssertionError")),
    Output("gradle", "./gradlew build --stacktrace", GRADLE, True, _met("TaskExecutionException")),
    Output("browser's console", "node scripts/open_page.mjs", BROWSER, False, _met("ReferenceError")),
    Output("pytest breaks", "pytest -p gate", INTERNAL, True, _met("AttributeError")),
    Output("exception group", "python eg.py", EXCEPTION_GROUP, True, _met("ValueError")),
    Output("the user interrupts", "./serve.sh", INTERRUPTED, True, interrupted=True),
    Output("a tool used wrongly", "/p/a.py", TOOL_USE_ERROR, True, tool="Edit"),
)
