"""Entry point that hooks are registered with: `python -I -S hook.py EVENT`.

Python compiles a script on every run, but not a module that it imports. So this file only imports its
neighbour, without a package: with -S there are no site-packages.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(__import__("hook_client").main(sys.argv[1:]))
