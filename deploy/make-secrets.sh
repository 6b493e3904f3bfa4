#!/bin/sh
# Makes the secrets of compose.yaml once, with random passwords: `sh deploy/make-secrets.sh [FOLDER]`.
#
# A file that exists is kept. The folder is closed to other users; the files in it are not, because a container
# reads them as a user of its own.
set -eu

folder=${1:-$(dirname "$0")/secrets}
umask 022
mkdir -p "$folder"
chmod 700 "$folder"

password() { # 32 hexadecimal digits: nothing that a URL or a configuration file would want quoted
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

keep() { # keep NAME TEXT
  [ -e "$folder/$1" ] || printf '%s\n' "$2" >"$folder/$1"
}

keep redis-password "$(password)"
redis_password=$(cat "$folder/redis-password")
keep redis-conf "requirepass $redis_password"
keep redis-url "redis://:$redis_password@redis:6379/0"
keep flower-auth "proctor:$(password)"
keep grafana-password "$(password)"
keep serve-tokens "$(password) live"
echo "$folder: $(find "$folder" -type f | wc -l | tr -d ' ') secrets"
