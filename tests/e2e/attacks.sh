#!/bin/sh
# All attacks of tests/attacks at small sizes; tools/attacks has them at full size. Needs root, to be several users.
: "${SW_SOURCE_DIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${SHAREWELL:=$SW_SOURCE_DIR/build/release/sharewell}"
export SHAREWELL
exec timeout 850 python3 "$SW_SOURCE_DIR/tests/attacks/attacks.py"
