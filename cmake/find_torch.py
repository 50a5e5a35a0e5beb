"""Prints the folder of the installed torch, though an isolated build hides it: $TORCH_ROOT, sys.path, or the environment of the interpreter."""

import os
import site
import sys
import sysconfig

if os.environ.get("TORCH_ROOT"):  # no other, then: CMake says what is wrong with it
    print(os.environ["TORCH_ROOT"].rstrip("/"))
    sys.exit()
places = [p for p in sys.path if p]
places += [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
places += site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
base = "python%d.%d" % sys.version_info[:2]
places += [os.path.join(p, "lib", base, "site-packages") for p in (os.environ.get("VIRTUAL_ENV"), sys.prefix, sys.base_prefix) if p]
for place in places:
    if os.path.isdir(os.path.join(place, "torch", "include", "torch", "csrc", "stable")):
        print(os.path.join(place, "torch"))
        break
