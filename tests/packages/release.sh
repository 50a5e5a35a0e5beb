#!/usr/bin/env bash
# scripts/release in a copy of the repository: a rehearsal changes nothing; --do changes, commits and tags; a new minor version goes into every file; the SBOM
# names what it relates; checksums hold; the same commit gives the same files. Usage: release.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -xf - -C "$work"
cd "$work"
git init -q .
git config user.name test
git config user.email test@localhost
git add -A
git commit -q -m copy
old=$(scripts/release --versions | sed 's/.* //')
fail() { echo "release: $1"; exit 1; }

scripts/release "$old" >out
[ -z "$(git status --porcelain | grep -v '^?? out$')" ] && [ -z "$(git tag)" ] || fail "a rehearsal changed something"
grep -q "^+## $old (20" out || fail "a rehearsal does not show the changelog's date"
cp -r "build/release-$old" first
scripts/release "$old" >/dev/null
diff -r first "build/release-$old" || fail "the same commit gives other files"
(cd "build/release-$old" && sha256sum --quiet -c SHA256SUMS)
tar -xzf "build/release-$old/sparsek-$old.tar.gz" "sparsek-$old/CMakeLists.txt"
/usr/bin/python3 - "build/release-$old/sparsek-$old.spdx.json" <<'PYTHON'
import json
import sys

found = json.load(open(sys.argv[1]))
ids = [part["SPDXID"] for part in found["packages"]] + ["SPDXRef-DOCUMENT"]
assert len(ids) == len(set(ids)), "two packages with one name"
assert all(part[end] in ids for part in found["relationships"] for end in ("spdxElementId", "relatedSpdxElement")), "a relation to nothing"
names = {part["name"] for part in found["packages"]}
assert {"sparsek", "sparsek-sys", "burn-sparse", "burn", "serde", "SQLite", "LIBXSMM", "PyTorch", "matplotlib"} <= names, names
missing = [part["name"] for part in found["packages"] if "-cargo-" in part["SPDXID"] and part["licenseDeclared"] == "NOASSERTION"]
assert not missing, f"crates without a licence: {missing}"
PYTHON
rm -rf out first "sparsek-$old"

# It refuses what it must not do.
refused() { if "$@" >/dev/null 2>&1; then fail "not refused: $*"; fi; }
refused scripts/release 9.0.0
refused scripts/release 0.0.1
refused scripts/release 1.2
echo >>README.md
refused scripts/release "$old" --do
git checkout -q README.md
sed -i 's/^version: .*/version: 9.9.9/' CITATION.cff
refused scripts/release --versions
git checkout -q CITATION.cff

sed -i "0,/^## /s//## 0.99.0 (unreleased)\n\n- A test.\n\n## /" CHANGELOG.md
git commit -q -a -m "Changelog"
scripts/release 0.99.0 --do >/dev/null
[ "$(git describe --exact-match)" = v0.99.0 ] && [ "$(git log -1 --format=%s)" = "Release 0.99.0" ] || fail "no commit with its tag"
[ -z "$(git status --porcelain)" ] || fail "a change was not committed"
scripts/release --versions | grep -q ' 0.99.0$'
[ -f debian/libsparsek0.99.install ] && grep -q '^Package: libsparsek0.99$' debian/control || fail "Debian's package has the old soname"
dpkg-parsechangelog -S Version | grep -qx 0.99.0
[ -z "$(grep -rnF "libsparsek${old%.*}" debian || true)" ] || fail "debian/ names the old soname"
grep -q '"0.99"' rust/burn-sparse/README.md
refused scripts/release 0.99.0
scripts/release 0.99.0 --files >/dev/null
(cd build/release-0.99.0 && sha256sum --quiet -c SHA256SUMS)
echo "release: rehearsed, refused, made; SBOM and checksums hold"
