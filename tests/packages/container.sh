#!/usr/bin/env bash
# The image of the Containerfile: built, and its program run as the image says, by buildah in a chroot, which needs no daemon and no kernel support. Where the
# base image cannot be pulled, debootstrap makes one of its name. Usage: container.sh     (as root; needs buildah and debootstrap)
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$PWD/build/container
mkdir -p "$work"
engine() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
base=$(sed -n 's/^FROM \([^ ]*\) AS build$/\1/p' Containerfile)
if ! engine inspect --type image "$base" >/dev/null 2>&1 && ! engine pull -q "$base" >/dev/null 2>&1; then
    echo "container: $base cannot be pulled: made by debootstrap"
    rm -rf "$work/base"
    debootstrap --variant=minbase bookworm "$work/base" >"$work/log" || { tail "$work/log"; exit 1; }
    made=$(engine from scratch)
    engine copy -q "$made" "$work/base" / >/dev/null
    engine commit -q --rm "$made" "$base" >/dev/null
    rm -rf "$work/base"
fi
engine bud --isolation chroot --pull-never -t sparsek . >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }

# As its user, in its folder, with its store: what one run measured the next one knows.
made=$(engine from --pull-never sparsek)
trap 'engine rm "$made" >/dev/null' EXIT
in_image() { engine run --isolation chroot "$made" -- "$@"; }
[ "$(in_image id -un)" = sparsek ] || { echo "container: its user is not sparsek"; exit 1; }
in_image sparsek info | grep -q openblas || { echo "container: no OpenBLAS"; exit 1; }
in_image sparsek tune --m 256 --k 256 --n 32 --block 32 --budget 0.1 -q
in_image sparsek explain --m 256 --k 256 --n 32 --block 32 | grep -q '^>' || { echo "container: the store forgets"; exit 1; }
echo "container: built, and its program runs as user sparsek"
