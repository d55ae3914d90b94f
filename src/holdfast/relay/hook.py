"""What a hook registers: `python -I -S hook.py EVENT`.

A file that python runs is compiled anew each time, one that it imports is not. So this one only finds its
neighbour, without a package: -S knows no site-packages.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(__import__("hook_client").main(sys.argv[1:]))
