/** Calls a user's `onError`. What goes wrong in it, at once or later, has nobody who could hear of it. */
export function tell(call: () => unknown): void {
  try {
    Promise.resolve(call()).catch(() => {})
  } catch {
    // The same.
  }
}
