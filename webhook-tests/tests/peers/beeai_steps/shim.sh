#!/bin/sh
# Writes down with which arguments and environment a tool was called, and then is that tool.
name=${0##*/}
seen=/seen/$name.$$
printf '%s\n' "$@" >"$seen.arguments"
env >"$seen.environment"
# git says what it calls itself.
[ "$name" != git ] || export GIT_TRACE="$seen.calls"
exec "/real/bin/$name" "$@"
