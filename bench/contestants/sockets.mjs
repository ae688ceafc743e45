// For stores that have no driver between themselves and the network: what leaves together counts as one request.
import { Socket } from 'node:net'

import { countRequests } from './requests.mjs'

countRequests(Socket.prototype, 'write')
