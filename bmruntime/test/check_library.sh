#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_library.sh LIBRARY STRIP KIB EXPORTS: checks a shared library as shipped: its size, the libraries it links to,
# and that it exports only bmrt_*, at least EXPORTS symbols.
set -eu
library=$1
strip=$2
limit=$(($3 * 1024))
least=$4
status=0

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
"$strip" --strip-all -o "$stripped" "$library"
size=$(wc -c < "$stripped")
echo "stripped size: $size bytes"
if [ "$size" -ge "$limit" ]; then
  echo "error: exceeds $limit bytes"
  status=1
fi

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
echo "links to:" $needed
for name in $needed; do
  case $name in
  libc.so.* | libstdc++.so.* | libm.so.* | libpthread.so.* | ld-linux*) ;;
  *)
    echo "error: links to $name"
    status=1
    ;;
  esac
done

# Weak symbols are templates of the standard library that a compiler may not have inlined.
foreign=$(nm -D --defined-only "$library" | awk '$2 != "W" && $2 != "V" && $2 != "u" {print $3}' | grep -v '^bmrt_' || true)
if [ -n "$foreign" ]; then
  echo "error: exports what is not bmrt_*:" $foreign
  status=1
fi
count=$(nm -D --defined-only "$library" | grep -c ' [TDR] bmrt_')
echo "exports: $count names"
if [ "$count" -lt "$least" ]; then
  echo "error: the interface is not exported"
  status=1
fi
exit $status
