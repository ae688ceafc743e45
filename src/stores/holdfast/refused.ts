// eslint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g
const LONGEST = 300

export interface RefusedDetails {
  /** False where asking again will not change the server's mind. */
  readonly retryable: boolean
  /** The server's own code, such as FORBIDDEN. */
  readonly code?: string | undefined
}

/** The server is there and says no. Its words may end up on a terminal, and it may be anybody's server. */
export class RefusedError extends Error {
  readonly retryable: boolean
  readonly code: string | undefined

  constructor(message: string, { retryable, code }: RefusedDetails) {
    super(message.slice(0, LONGEST).replace(CONTROL, '?'))
    this.retryable = retryable
    this.code = code
    this.name = 'RefusedError'
  }
}
