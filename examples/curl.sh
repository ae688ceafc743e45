#!/bin/sh
# Any language that speaks HTTP can take locks from a server: examples/curl.sh http://127.0.0.1:7420
set -e
server=${1:-http://127.0.0.1:7420}
post() { curl -fsS "$server/v1/$1" -H 'Holdfast-Request: 1' -H 'Content-Type: application/json' -d "$2"; }

answer=$(post acquire '{ "name": "report", "ttl": 10000, "wait": 5000 }')
lease=$(printf %s "$answer" | sed 's/.*"lease":"\([^"]*\)".*/\1/')
echo "held: $(curl -fsS "$server/v1/locks/report" | grep -o '"weight":1')"
post release "{ \"name\": \"report\", \"lease\": \"$lease\" }"
