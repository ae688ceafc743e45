#!/bin/sh
# A script that never runs twice at the same time, on any machine: HOLDFAST_URL=… examples/self-locking.sh
[ "$HOLDFAST_NAME" = my-job ] || exec holdfast run my-job --wait 0 -- "$0" "$@"

echo "running under $HOLDFAST_NAME"
