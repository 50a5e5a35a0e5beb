#!/bin/sh
# Makes the locales of the tests in a folder, which LOCPATH then names: a comma for a point, a point of several bytes, letters whose capitals are not those of
# ASCII (in UTF-8, and in one byte each). Usage: make.sh FOLDER
set -e
mkdir -p "$1"
make() {
    [ -f "$1/$2.$3/LC_NUMERIC" ] || localedef -i "$2" -f "$3" "$1/$2.$3" || { echo "localedef cannot make $2.$3: is Debian's package locales installed?"; exit 1; }
}
make "$1" de_DE UTF-8
make "$1" ps_AF UTF-8
make "$1" tr_TR UTF-8
make "$1" tr_TR ISO-8859-9
[ "$(LOCPATH=$1 LC_ALL=de_DE.UTF-8 locale decimal_point)" = , ] || { echo "de_DE has no decimal comma"; exit 1; }
[ "$(LOCPATH=$1 LC_ALL=ps_AF.UTF-8 locale decimal_point | wc -c)" = 3 ] || { echo "the point of ps_AF is not of two bytes"; exit 1; }
