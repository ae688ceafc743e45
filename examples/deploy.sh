#!/bin/sh
# A lock for a part of a script: HOLDFAST_URL=… examples/deploy.sh
set -e
echo "building"
holdfast acquire deploy --wait 5m >/dev/null
echo "deploying"
holdfast release deploy
echo "done"
